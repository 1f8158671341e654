"""Parses the output of the tests on a board. A program that ends early, prints nothing, hangs, or cannot be reached is
an error, never a pass: without Unity's summary, and a summary that agrees with the cases, there is no success."""

import re
import time

import click
import serial
from platformio.test.exception import UnitTestError, UnitTestSuiteError
from platformio.test.result import TestStatus
from platformio.test.runners.base import TestRunnerBase
from platformio.test.runners.readers.native import NativeTestOutputReader
from platformio.test.runners.unity import UnityTestRunner

SUMMARY = re.compile(r"(\d+) Tests (\d+) Failures (\d+) Ignored")
NOT_ENDED = 124  # the exit code of `timeout`


class CustomTestRunner(UnityTestRunner):
    EXTRA_LIB_DEPS = None  # unity.h is in this folder

    def setup(self):
        self.summary = None
        self.seconds = float(self.option("custom_test_timeout", "60"))

    def configure_build_env(self, env):
        return TestRunnerBase.configure_build_env(self, env)

    def option(self, name, default=None):
        return self.project_config.get(f"env:{self.test_suite.env_name}", name, default)

    def stage_testing(self):
        if self.options.without_testing:
            return
        click.secho("Testing...", bold=True)
        port = self.get_test_port()
        failure = self.read_port(port) if self.platform.is_embedded() or port else self.read_program()
        self.judge(failure)

    def on_testing_line_output(self, line):
        found = SUMMARY.search(line)
        if found:
            self.summary = tuple(int(n) for n in found.groups())
        before = len(self.test_suite.cases)
        super().on_testing_line_output(line)
        if not self.options.verbose and not found and len(self.test_suite.cases) == before:
            click.echo(line, nl=False)  # the reason of a failure is on the preceding lines

    def read_program(self):
        """Run the program; returns an error, or None. `timeout` in the program's script ends one that hangs."""
        try:
            NativeTestOutputReader(self).begin()
        except UnitTestError as error:
            return str(error)
        return None

    def read_port(self, port):
        """Read the port until the summary arrives; returns an error, or None."""
        if not port:
            return "no port: give test_port, or --test-port"
        deadline = time.monotonic() + self.seconds
        try:
            with serial.serial_for_url(port, baudrate=self.get_test_speed(), timeout=0.2) as link:
                while self.summary is None:
                    if time.monotonic() > deadline:
                        return f"no summary within {self.seconds:g} s (custom_test_timeout)"
                    self.on_testing_data_output(link.read(link.in_waiting or 1))
        except (OSError, serial.SerialException) as error:
            return str(error)
        return None

    def judge(self, failure):
        """Raise unless the summary arrived, agrees with the cases, and contains at least one passed test."""
        cases = [c for c in self.test_suite.cases if c.status != TestStatus.ERRORED]
        failed = sum(c.status == TestStatus.FAILED for c in cases)
        if self.summary is None:
            seen = f"after {len(cases)} of its tests" if cases else "without a test"
            raise UnitTestSuiteError(
                f"The tests ended {seen}, before their summary: {failure or 'the program ended'}"
            )
        tests, failures, _ = self.summary
        if (len(cases), failed) != (tests, failures):
            raise UnitTestSuiteError(
                f"The summary says {tests} tests and {failures} failures, but {len(cases)} and {failed} were seen"
            )
        if failures == 0 and failure:
            raise UnitTestSuiteError(f"All tests passed, but then: {failure}")
        if not any(c.status == TestStatus.PASSED for c in cases) and not failed:
            raise UnitTestSuiteError("No test has run")
