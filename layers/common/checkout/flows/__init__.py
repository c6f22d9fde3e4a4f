"""What the product does, one file a flow: decide with the domain, call the outside through ports,
write on condition.
"""
