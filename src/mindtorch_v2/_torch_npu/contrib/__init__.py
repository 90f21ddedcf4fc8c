"""`torch_npu.contrib`: of it, `transfer_to_npu`."""
