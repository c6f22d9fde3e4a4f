"""Local world: an AWS emulator, a gateway to the real handlers, wallets and a shop, on loopback.

`python -m sandbox dev` runs the local world, `python -m sandbox demo` makes one purchase in it.

    cloud.py template.py      emulator: AWS, with the resources of template.yaml
    gateway.py triggers.py    gateway: HTTP requests, queues and the schedule invoke the handlers
    wallets/                  wallets: two Open Payments providers, also used by the tests
    shop.py shop_pages/       shop: a merchant's own server
    outbox.py                 outbox: the e-mails that would be sent
    demo.py webhooks.py       commands: a purchase without a browser, webhook forwarding
    local_world.py place.py   the local world: start order, ports and folders
    artifacts.py rehearsal/   rehearsal: the built stack, deployed into the emulator
"""
