package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"nocturne/store/open"
)

// configFile is the program's own settings, in nocturne/config.yaml below the
// XDG configuration folder. Flags and variables win over it.
type configFile struct {
	Database string `yaml:"db"`
}

// readConfig reads the settings; a missing file has none.
func readConfig() (configFile, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return configFile{}, nil //nolint:nilerr // no home, no settings
	}
	path := filepath.Join(folder, "nocturne", "config.yaml")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return configFile{}, nil
	}
	if err != nil {
		return configFile{}, err
	}
	var config configFile
	if err := yaml.UnmarshalWithOptions(text, &config, yaml.Strict()); err != nil {
		return configFile{}, usage(fmt.Errorf("%s: %w", path, err))
	}
	return config, nil
}

// databaseURL is --db or NOCTURNE_DB, else db of the configuration file, else
// the default.
func (a *app) databaseURL() (string, error) {
	if a.database != "" {
		return a.database, nil
	}
	config, err := readConfig()
	if err != nil {
		return "", err
	}
	if config.Database != "" {
		return config.Database, nil
	}
	return open.Default()
}
