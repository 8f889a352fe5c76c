package ledger

import (
	"cmp"
	"path"
	"strings"
)

// inFolder returns the names of files, and the folder that is said once for those that are relative; empty if
// each name says its own, because the folder of one is not known or that would be no shorter.
func inFolder(files []file) (names []string, folder string) {
	below := map[string]int{} // how many files are below a folder
	longer := len(" in ")     // by how many bytes the full names are longer
	names = named(files)
	for _, f := range files {
		full := cmp.Or(f.full, f.name)
		longer += len(full) - len(f.name)
		if !path.IsAbs(full) {
			return names, ""
		}
		for at := strings.LastIndexByte(full, '/'); at > 0; at = strings.LastIndexByte(full[:at], '/') {
			below[full[:at]]++
		}
	}
	most := 0
	for name, n := range below {
		if gain := n*len(name+"/") - len(name) - longer; gain > most || gain == most && gain > 0 && name < folder {
			most, folder = gain, name
		}
	}
	if folder == "" {
		return names, ""
	}
	for i, f := range files {
		names[i] = strings.TrimPrefix(cmp.Or(f.full, f.name), folder+"/")
	}
	return names, folder
}

func named(files []file) []string {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	return names
}
