"""What happens without anybody asking: the scheduled rounds, and what is tidied up at the wallets.
Has no public address.
"""
