//go:build race

package salvage

func init() { raced = true }
