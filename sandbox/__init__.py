"""The local world: an AWS emulator, a gateway that calls the real handlers, wallet providers and a
demo shop, all on loopback. `python -m sandbox dev` and `python -m sandbox demo` run it.
"""
