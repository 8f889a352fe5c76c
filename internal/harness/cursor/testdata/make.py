"""Makes the database of the tests anew from its rows: python3 make.py"""

import json
import os
import sqlite3

os.chdir(os.path.dirname(os.path.abspath(__file__)))
with open("rows.in.json", encoding="utf-8") as f:
    rows = json.load(f)
if os.path.exists("state.vscdb"):
    os.remove("state.vscdb")
db = sqlite3.connect("state.vscdb")
for table in ("ItemTable", "cursorDiskKV"):
    db.execute("CREATE TABLE %s (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)" % table)
for row in rows:
    value = row["value"]
    if not isinstance(value, str) and value is not None:
        value = json.dumps(value)
    db.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (row["key"], value and value.encode()))
db.commit()
db.close()
