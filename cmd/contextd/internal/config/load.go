package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/contextd/contextd/internal/memory"
)

// EnvPrefix begins the name of every variable.
const EnvPrefix = "CONTEXTD_"

// EnvName is the variable of a setting.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// FileKey is the key of a setting in the file.
func FileKey(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

// Load completes a configuration whose flags f were bound and parsed: settings without a flag are taken from
// the environment, else from the file. Errors name the flag, the variable or the key.
func (c *Config) Load(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) error {
	l, err := readLayers(f, lookupEnv)
	if err != nil {
		return err
	}
	listenSet := f.Lookup("listen").Changed
	var problems []error
	c.Settings().VisitAll(func(s *pflag.Flag) {
		flag := f.Lookup(s.Name)
		if flag == nil || flag.Changed {
			return
		}
		text, source := l.find(s.Name)
		if source == "" {
			return
		}
		listenSet = listenSet || s.Name == "listen"
		if err := flag.Value.Set(text); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", source, WrongValue(flag.Value, err)))
		}
	})
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if f.Lookup(dsnFlag).Changed && HoldsPassword(c.Postgres.DSN) {
		return fmt.Errorf("--%s must hold no password, which other processes could see: set %s, postgres_dsn_file or PGPASSFILE", dsnFlag, EnvName(dsnFlag))
	}
	if c.UnixSocket != "" && !listenSet {
		// Whoever sets only a unix socket does not expect a TCP port, which others may reach.
		c.Listen = ""
	}
	return c.Validate()
}

// Sources returns where Load takes each setting from, by the flag's name: "--flag", a variable, or a file and
// key. Settings that have their default are absent.
func Sources(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) (map[string]string, error) {
	l, err := readLayers(f, lookupEnv)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			out[flag.Name] = "--" + flag.Name
		} else if _, source := l.find(flag.Name); source != "" {
			out[flag.Name] = source
		}
	})
	return out, nil
}

// layers are the sources of settings other than flags.
type layers struct {
	lookupEnv func(string) (string, bool)
	path      string
	file      map[string]string
}

func readLayers(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) (layers, error) {
	path, err := filePath(f, lookupEnv)
	if err != nil || path == "" {
		return layers{lookupEnv: lookupEnv}, err
	}
	values, err := readFile(path)
	return layers{lookupEnv, path, values}, err
}

// find returns a setting's text and its source; both are empty if no layer sets it.
func (l layers) find(flag string) (text, source string) {
	if text, ok := l.lookupEnv(EnvName(flag)); ok {
		return text, EnvName(flag)
	}
	if text, ok := l.file[FileKey(flag)]; ok {
		return text, l.path + ": " + FileKey(flag)
	}
	return "", ""
}

// Settings returns flags for all settings, with names, help and defaults. Parsing them does not change c.
func (c *Config) Settings() *pflag.FlagSet {
	f := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	f.SortFlags = false
	scratch := *c
	scratch.bind(f)
	return f
}

// WrongValue is the error for an invalid value of a setting, which replaces the parser's.
func WrongValue(v pflag.Value, err error) error {
	switch v.Type() {
	case "uint64", "uint32", "uint":
		return errors.New("must be a whole number, and not less than 0")
	case "int64", "int32", "int":
		return errors.New("must be a whole number")
	case "bool":
		return errors.New("must be true or false")
	case "duration":
		return errors.New("must be a duration with its unit, such as 500ms, 30s or 5m")
	default:
		return err
	}
}

func filePath(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) (string, error) {
	path, err := f.GetString(FileFlag)
	if err != nil {
		return "", err
	}
	if path == "" {
		path, _ = lookupEnv(EnvName(FileFlag))
	}
	return path, nil
}

// UnknownSettingError is for a key of a configuration file that is not a setting.
type UnknownSettingError struct{ Path, Key string }

func (e *UnknownSettingError) Error() string {
	return fmt.Sprintf("%s: %s: there is no such setting", e.Path, e.Key)
}

// readFile returns the text of every key. The text of a list or a map is YAML.
func readFile(path string) (map[string]string, error) {
	content, err := memory.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	var nodes map[string]yaml.Node
	if err := unmarshal(content, &nodes); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	known := Default()
	settings := known.Settings()
	out := make(map[string]string, len(nodes))
	for key, node := range nodes {
		setting := settings.Lookup(strings.ReplaceAll(key, "_", "-"))
		if setting == nil || strings.Contains(key, "-") {
			return nil, &UnknownSettingError{path, key}
		}
		if node.Kind == yaml.AliasNode {
			node = *node.Alias
		}
		if node.Kind == yaml.ScalarNode {
			out[key] = node.Value
			continue
		}
		if setting.Value.Type() == "string" {
			return nil, fmt.Errorf("%s: %s: must be a text, not %s", path, key, yamlKinds[strings.TrimPrefix(node.ShortTag(), "!!")])
		}
		text, err := yaml.Marshal(&node)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, key, err)
		}
		out[key] = string(text)
	}
	return out, nil
}
