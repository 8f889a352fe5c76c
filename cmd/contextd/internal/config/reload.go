package config

import (
	"github.com/spf13/pflag"
)

// Reload reads the file and the environment again; the flags that were set in f still override them. The
// configuration that is bound to f does not change.
func Reload(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) (Config, error) {
	c := Default()
	again := pflag.NewFlagSet("reload", pflag.ContinueOnError)
	c.Bind(again)
	var err error
	f.Visit(func(flag *pflag.Flag) {
		if err == nil && again.Lookup(flag.Name) != nil {
			err = again.Set(flag.Name, flag.Value.String())
		}
	})
	if err != nil {
		return Config{}, err
	}
	if err := c.Load(again, lookupEnv); err != nil {
		return Config{}, err
	}
	return c, nil
}

// Differences lists the settings, by their keys in the file, whose values differ in other.
func (c *Config) Differences(other *Config) []string {
	var out []string
	theirs := other.Settings()
	c.Settings().VisitAll(func(f *pflag.Flag) {
		if theirs.Lookup(f.Name).DefValue != f.DefValue {
			out = append(out, FileKey(f.Name))
		}
	})
	return out
}
