//go:build ignore

// classes_gen turns DerivedGeneralCategory.txt of the Unicode Character Database,
// read from standard input, into classes.txt, written to standard output:
//
//	go run classes_gen.go <DerivedGeneralCategory.txt >classes.txt
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Lu and Lt, and Lm and Lo, are never distinguished by a split pattern.
var classOf = map[string]byte{
	"Lu": 'U', "Lt": 'U',
	"Ll": 'L',
	"Lm": 'C', "Lo": 'C',
	"Mn": 'M', "Mc": 'M', "Me": 'M',
	"Nd": 'N', "Nl": 'N', "No": 'N',
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "classes_gen:", err)
		os.Exit(1)
	}
}

func run() error {
	classes := make([]byte, 0x110000)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		span, category, ok := strings.Cut(line, ";")
		if !ok {
			continue
		}
		class, ok := classOf[strings.TrimSpace(category)]
		if !ok {
			continue
		}
		first, last, isRange := strings.Cut(strings.TrimSpace(span), "..")
		if !isRange {
			last = first
		}
		lo, err := strconv.ParseUint(first, 16, 21)
		if err != nil {
			return err
		}
		hi, err := strconv.ParseUint(last, 16, 21)
		if err != nil {
			return err
		}
		for r := lo; r <= hi; r++ {
			classes[r] = class
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}

	out := bufio.NewWriter(os.Stdout)
	for lo := 0; lo < len(classes); {
		hi := lo + 1
		for hi < len(classes) && classes[hi] == classes[lo] {
			hi++
		}
		if classes[lo] != 0 {
			fmt.Fprintf(out, "%X-%X %c\n", lo, hi-1, classes[lo])
		}
		lo = hi
	}
	return out.Flush()
}
