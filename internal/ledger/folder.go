package ledger

import (
	"cmp"
	"path"
	"strings"
)

// folderOf is how many files, the first of a list, the choice of a folder considers: a list seldom shows more.
const folderOf = 100

// inFolder returns the names of files, and the folder to which relative names belong, which is written once. The
// folder is empty if each name has its own, because the folder of one is unknown or because the list would not be
// shorter.
func inFolder(files []file) (names []string, folder string) {
	below := map[string]int{} // how many files are below a folder
	longer := len(" in ")     // by how many bytes the full names are longer
	names = make([]string, len(files))
	for i, f := range files {
		names[i] = f.name
	}
	for i, f := range files {
		full := cmp.Or(f.full, f.name)
		if !path.IsAbs(full) {
			return names, ""
		}
		if i >= folderOf {
			continue
		}
		longer += len(full) - len(f.name)
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
