"""Runs tests/python/test_*.py and prints what was skipped and the totals."""
import pathlib
import sys
import unittest

suite = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent), "test_*.py")
result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
failed = len(result.failures) + len(result.errors)
for case, why in result.skipped:
    print(f"skipped: {case.id()}: {why}")
print(f"{result.testsRun - failed - len(result.skipped)} passed, {failed} failed, {len(result.skipped)} skipped")
sys.exit(failed > 0)
