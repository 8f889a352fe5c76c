//go:build race

package disklog

func init() { raced = true }
