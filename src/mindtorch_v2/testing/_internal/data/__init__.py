"""`torch.testing._internal.data`: networks that tests of data and containers share. There are none here."""
