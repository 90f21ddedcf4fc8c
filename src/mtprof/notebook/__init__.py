"""In notebooks: what results look like (`reprs.py`), and `%%mtprof`, which profiles a cell (`magic.py`)."""
