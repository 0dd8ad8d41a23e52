"""A history as Apache Otava's own reader and analysis see it: where each column changes, as "COLUMN POINTS NIGHT…", a line
each. Usage: otava_reads.py history.csv COLUMN…

Otava's other readers (databases, dashboards, chat) are of no use here, and what they are made of is not installed."""
import sys
from datetime import datetime, timezone
from unittest.mock import MagicMock

for absent in ("google", "google.cloud", "google.oauth2", "slack_sdk", "pg8000", "requests", "requests.exceptions", "configargparse",
               "ruamel", "ruamel.yaml", "tabulate"):
    sys.modules[absent] = MagicMock()

from otava.data_selector import DataSelector  # noqa: E402
from otava.importer import CsvImporter  # noqa: E402
from otava.test_config import CsvMetric, CsvTestConfig  # noqa: E402

path, columns = sys.argv[1], sys.argv[2:]
config = CsvTestConfig("nights", path, time_column="time", attributes=["night", "driver"],
                       metrics=[CsvMetric(name, -1, 1.0, name) for name in columns])
always = DataSelector()
always.since_time = datetime.fromtimestamp(0, timezone.utc)  # of itself it looks back a year
series = CsvImporter().fetch_data(config, always)
found = series.analyze().change_points
for name in columns:
    print(name, len(series.data[name]), *(series.attributes["night"][point.index] for point in found.get(name, [])))
