package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// size is a flag for a number of bytes, plain or with KiB, MiB or GiB.
type size uint64

// SizeValue is a flag for a number of bytes, in the form that settings use.
func SizeValue(p *uint64) pflag.Value { return sizeValue(p) }

func sizeValue(p *uint64) *size { return (*size)(p) }

var sizeUnits = []struct {
	suffix string
	bytes  uint64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1},
}

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	for _, unit := range sizeUnits {
		number, ok := strings.CutSuffix(text, unit.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 64)
		if over, _ := bits.Mul64(n, unit.bytes); err != nil || over != 0 {
			break
		}
		*s = size(n * unit.bytes)
		return nil
	}
	return fmt.Errorf("must be a number of bytes below %d, such as 1048576, 512KiB, 16MiB or 1GiB", uint64(math.MaxUint64))
}

// String implements pflag.Value. It uses the largest unit that divides the number.
func (s *size) String() string {
	for _, unit := range sizeUnits[:3] {
		if *s != 0 && uint64(*s)%unit.bytes == 0 {
			return strconv.FormatUint(uint64(*s)/unit.bytes, 10) + unit.suffix
		}
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Type implements pflag.Value.
func (*size) Type() string { return "size" }

// ParseTokens parses a number of tokens such as 32000 or 32k.
func ParseTokens(text string) (uint64, error) {
	digits, thousands := strings.CutSuffix(strings.ToLower(text), "k")
	n, err := strconv.ParseUint(digits, 10, 50)
	if err != nil {
		return 0, fmt.Errorf("%q must be a number of tokens such as 32000 or 32k", text)
	}
	if thousands {
		n *= 1000
	}
	return n, nil
}

// modeValue is a flag for a file mode in octal digits.
type modeValue struct{ mode *fs.FileMode }

// Set implements pflag.Value.
func (v modeValue) Set(text string) error {
	n, err := strconv.ParseUint(text, 8, 32)
	if err != nil || n > 0o777 {
		return fmt.Errorf("must be an octal file mode such as 0600 or 0660")
	}
	*v.mode = fs.FileMode(n)
	return nil
}

// String implements pflag.Value.
func (v modeValue) String() string {
	if v.mode == nil {
		return ""
	}
	return fmt.Sprintf("%04o", uint32(*v.mode))
}

// Type implements pflag.Value.
func (modeValue) Type() string { return "mode" }

type levelValue struct{ level *slog.Level }

// Set implements pflag.Value.
func (v levelValue) Set(text string) error {
	switch strings.ToLower(text) {
	case "debug", "info", "warn", "error":
		return v.level.UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("must be debug, info, warn or error")
	}
}

// String implements pflag.Value.
func (v levelValue) String() string {
	if v.level == nil {
		return ""
	}
	return strings.ToLower(v.level.String())
}

// Type implements pflag.Value.
func (levelValue) Type() string { return "level" }
