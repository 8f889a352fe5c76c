package transport

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxDepth bounds the search in nested messages; protobuf itself refuses deeper
// ones than a hundred times this many of the API's.
const maxDepth = 64

// findInvalidText returns the path of the first string in an encoded message
// that is not UTF-8, or "" if the message is malformed in another way.
func findInvalidText(b []byte, md protoreflect.MessageDescriptor) string {
	path, _ := search(b, md, maxDepth)
	return path
}

// search returns the path if it finds an invalid text. goOn is false if it found one, or if the bytes are not a
// message.
func search(b []byte, md protoreflect.MessageDescriptor, depth int) (path string, goOn bool) {
	if depth == 0 {
		return "", false
	}
	indexes := map[protowire.Number]int{}
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", false
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return "", false
		}
		value := b[n : n+size]
		b = b[n+size:]
		fd := md.Fields().ByNumber(num)
		if fd == nil || typ != protowire.BytesType {
			continue
		}
		content, _ := protowire.ConsumeBytes(value)
		name := string(fd.Name())
		if fd.IsList() {
			name = fmt.Sprintf("%s[%d]", name, indexes[num])
			indexes[num]++
		}
		switch {
		case fd.Kind() == protoreflect.StringKind && !utf8.Valid(content):
			return name, false
		case fd.IsMap():
			if bad, goOn := search(content, fd.Message(), depth-1); !goOn {
				return mapEntry(name, bad, content), false
			}
		case fd.Message() != nil:
			if bad, goOn := search(content, fd.Message(), depth-1); !goOn {
				if bad == "" {
					return "", false
				}
				return name + "." + bad, false
			}
		}
	}
	return "", true
}

// mapEntry names an entry by its key, if the key can be printed.
func mapEntry(name, bad string, entry []byte) string {
	if bad == "" {
		return ""
	}
	for bad == "value" && len(entry) > 0 {
		num, typ, n := protowire.ConsumeTag(entry)
		size := protowire.ConsumeFieldValue(num, typ, entry[n:])
		if num == 1 && typ == protowire.BytesType {
			key, _ := protowire.ConsumeString(entry[n:])
			return fmt.Sprintf("%s[%q]", name, key)
		}
		entry = entry[n+size:]
	}
	return name
}
