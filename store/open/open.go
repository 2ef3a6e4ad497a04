// Package open turns a database URL into a store.
package open

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"nocturne/store"
	"nocturne/store/postgres"
	"nocturne/store/sqlite"
)

// Forms are the URLs that Store takes, for messages and help.
const Forms = "sqlite:PATH, postgres://USER@HOST:PORT/DATABASE"

// Store opens the store at a URL: sqlite:PATH (relative to the working folder,
// or with ~/ to the home), postgres:// or postgresql://. It does not migrate.
func Store(ctx context.Context, text string) (store.Store, error) {
	switch scheme, rest, _ := strings.Cut(text, ":"); scheme {
	case "sqlite":
		path, err := sqlitePath(rest)
		if err != nil {
			return nil, fmt.Errorf("database URL %q: %w", text, err)
		}
		return sqlite.Open(ctx, path)
	case "postgres", "postgresql":
		if !strings.HasPrefix(rest, "//") {
			return nil, fmt.Errorf("database URL %q: %s:// was expected", store.MaskURL(text), scheme)
		}
		return postgres.Open(ctx, text)
	}
	return nil, refuse(text)
}

// refuse says what is wrong with a URL of no known form.
func refuse(text string) error {
	switch u, err := url.Parse(text); {
	case text == "":
		return fmt.Errorf("the database URL is empty: want one of %s", Forms)
	case err == nil && u.Scheme == "file":
		return fmt.Errorf("database URL %q: write sqlite:%s", text, u.Path)
	case err == nil && u.Scheme == "" || filepath.IsAbs(text):
		return fmt.Errorf("database URL %q has no scheme: for a SQLite file write sqlite:%s", store.MaskURL(text), text)
	}
	return fmt.Errorf("database URL %q: want one of %s", store.MaskURL(text), Forms)
}

// sqlitePath returns the path of sqlite:PATH, which may be written with the
// slashes of other tools: sqlite:///PATH.
func sqlitePath(rest string) (string, error) {
	if after, has := strings.CutPrefix(rest, "//"); has {
		if !strings.HasPrefix(after, "/") {
			return "", fmt.Errorf("there is no host in it: write sqlite:%s for a file in the working folder, sqlite:/%s for an absolute path", after, after)
		}
		rest = "/" + strings.TrimLeft(after, "/")
	}
	switch {
	case rest == "":
		return "", errors.New("the path is missing: write sqlite:PATH")
	case strings.Contains(rest, ":memory:"):
		return "", errors.New("a database in memory would not survive the command: name a file")
	case strings.ContainsAny(rest, "?\x00"):
		return "", errors.New("a path without parameters was expected")
	}
	if below, has := strings.CutPrefix(rest, "~/"); has {
		home, err := homeFolder()
		if err != nil {
			return "", err
		}
		return filepath.Join(home, below), nil
	}
	return rest, nil
}

// Default is the URL of the default store: a SQLite file in the user's data
// folder, $XDG_DATA_HOME/nocturne/nocturne.db or ~/.local/share in its place
// (XDG Base Directory Specification 0.8).
func Default() (string, error) {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // the specification says to ignore it then
		home, err := homeFolder()
		if err != nil {
			return "", fmt.Errorf("%w: name a database with --db or NOCTURNE_DB", err)
		}
		data = filepath.Join(home, ".local", "share")
	}
	return "sqlite:" + filepath.Join(data, "nocturne", "nocturne.db"), nil
}

// homeFolder also asks the user database, since services may run without HOME.
func homeFolder() (string, error) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return home, nil
	}
	if current, err := user.Current(); err == nil && filepath.IsAbs(current.HomeDir) {
		return current.HomeDir, nil
	}
	return "", errors.New("the home folder of this user is not known (HOME is not set)")
}
