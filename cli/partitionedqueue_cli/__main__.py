"""`python -m partitionedqueue_cli` is `pq`."""

import sys

from partitionedqueue_cli.main import main

sys.exit(main())
