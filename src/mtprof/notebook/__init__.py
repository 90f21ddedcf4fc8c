"""In notebooks: how results are displayed (`reprs.py`), and `%%mtprof`, which profiles a cell (`magic.py`)."""
