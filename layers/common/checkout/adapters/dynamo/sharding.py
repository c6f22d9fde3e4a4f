"""Keys of an index of which a merchant has several shards (domain/shards.py).

Shard 0 of a list has its owner as the index's key, as all lists had before there were shards, and
shard 3 has `owner#3`. So the attribute `merchant` of a record holds its merchant and its shard.
"""

from __future__ import annotations

from checkout.adapters.dynamo.values import Item, Value, number, text, text_from


def owned(owner: str, shard: int) -> Value:
    """Return the key of a shard of the owner's list."""
    return text(f"{owner}#{shard}" if shard else owner)


def sharded(item: Item) -> Item:
    """Return an item of a record with `merchant` and `shard`, which become one attribute."""
    shard = int(item.pop("shard")["N"])
    return item | {"merchant": owned(text_from(item["merchant"]), shard)}


def unsharded(item: Item) -> Item:
    """Return the item with `merchant` and `shard` as two attributes again."""
    merchant, mark, shard = text_from(item["merchant"]).partition("#")
    if not mark:
        return item
    return item | {"merchant": text(merchant), "shard": number(int(shard))}
