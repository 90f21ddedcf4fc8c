"""`torch.utils.data.datapipes.utils`: helpers of pipes that read files, and of pipes that continue where they were."""
