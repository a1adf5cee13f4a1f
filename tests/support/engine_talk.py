"""What is said to an engine: every statement, in its order."""

from functools import cache

import duckdb
import pytest

from lrm.tables import duckdb_connection


class Talk(list):
    """The statements that reach DuckDB, PostgreSQL and Spark from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
        super().__init__()
        {"postgres": self._hear_postgres, "spark": self._hear_spark}.get(engine, self._hear_duckdb)(
            monkeypatch
        )

    def _heard(self, cls, name, monkeypatch):
        really = getattr(cls, name)

        def said(this, *args, **kwargs):
            self.append((name, *(arg for arg in args if isinstance(arg, str))))
            return really(this, *args, **kwargs)

        monkeypatch.setattr(cls, name, said)

    def _hear_duckdb(self, monkeypatch):
        really = duckdb.connect

        def connected(*args, config):
            # With one thread, Python code that DuckDB calls runs where a trace can follow it.
            return Listening(really(*args, config={**config, "threads": 1}), self)

        monkeypatch.setattr(duckdb, "connect", connected)
        # A database that hears, in place of the one that the process already has.
        monkeypatch.setattr(duckdb_connection, "_shared", cache(duckdb_connection._Database))

    def _hear_postgres(self, monkeypatch):
        import psycopg

        for name in ("execute", "copy"):
            self._heard(psycopg.Cursor, name, monkeypatch)

    def _hear_spark(self, monkeypatch):
        from pyspark.sql import SparkSession
        from pyspark.sql.classic.dataframe import DataFrame

        for name in ("selectExpr", "where", "join", "groupBy", "toArrow"):
            self._heard(DataFrame, name, monkeypatch)
        self._heard(SparkSession, "sql", monkeypatch)


class Listening:
    """Stands for a connection, whose class is not Python's to change."""

    def __init__(self, real, talk):
        self._real, self._talk = real, talk

    def __enter__(self):
        self._real.__enter__()
        return self

    def __exit__(self, *reason):
        return self._real.__exit__(*reason)

    def __getattr__(self, name):
        member = getattr(self._real, name)
        if not callable(member):
            return member

        def said(*args, **kwargs):
            self._talk.append((name, *(arg for arg in args if isinstance(arg, str))))
            result = member(*args, **kwargs)
            return Listening(result, self._talk) if name == "cursor" else result

        return said
