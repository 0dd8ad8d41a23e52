"""Checks files against the JSON Schema that their own "schema" member names: ceiling-scout/<kind>/<version>.
Usage: schema.py FOLDER_OF_SCHEMAS FILE…"""
import json
import os
import sys

import jsonschema

bad = 0
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    kind = document["schema"].split("/")[1]
    with open(os.path.join(sys.argv[1], kind + ".schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    for error in list(validator(schema).iter_errors(document))[:5]:
        print(f"{path}: {error.json_path}: {error.message}")
        bad = 1
sys.exit(bad)
