// Pebble.
package main

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func init() {
	db, _ := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), Levels: [7]pebble.LevelOptions{{FilterPolicy: bloom.FilterPolicy(10)}}})
	db.Checkpoint("")
	rows, _ := db.NewIter(nil)
	rows.First()
	db.NewBatch().Commit(nil)
	fmt.Println(db.Metrics())
}
