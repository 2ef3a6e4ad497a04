package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nocturne/store"
	"nocturne/store/open"
)

// missingStoreError says that a command that only reads found no store. It
// makes none: an empty one would hide a misspelt path.
type missingStoreError struct {
	location string
	// standard is true for the default store, which need not exist: it is empty.
	standard bool
}

func (e *missingStoreError) Error() string {
	return fmt.Sprintf("there is no store at %s yet; `nocturne tune FILE` and `nocturne demo` make one, --db names another", e.location)
}

// store opens the store to write: it is made when there is none, and brought up
// to date.
func (a *app) store(ctx context.Context) (store.Store, store.Status, error) {
	url, err := a.databaseURL()
	if err != nil {
		return nil, store.Status{}, err
	}
	if _, _, err := open.File(url); err != nil {
		return nil, store.Status{}, usage(err)
	}
	opened, err := open.Store(ctx, url)
	if err != nil {
		return nil, store.Status{}, err
	}
	if err := opened.Migrate(ctx); err != nil {
		return nil, store.Status{}, errors.Join(err, opened.Close())
	}
	status, err := opened.Status(ctx)
	if err != nil {
		return nil, store.Status{}, errors.Join(err, opened.Close())
	}
	return opened, status, nil
}

// existing opens a store only if there is one. *missingStoreError.
func (a *app) existing(ctx context.Context) (store.Store, error) {
	url, err := a.databaseURL()
	if err != nil {
		return nil, err
	}
	path, isFile, err := open.File(url)
	if err != nil {
		return nil, usage(err)
	}
	if isFile {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			standard, standardErr := open.Default()
			return nil, usage(&missingStoreError{location: path, standard: standardErr == nil && url == standard})
		}
	}
	return open.Store(ctx, url)
}

// reading runs a command that only reads: nothing is made and nothing migrated.
func (a *app) reading(ctx context.Context, do func(store.Store) error) (err error) {
	opened, err := a.existing(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	status, err := opened.Status(ctx)
	switch {
	case err != nil:
		return err
	case status.Version < status.Known:
		return fmt.Errorf("%w: %s has schema version %d, this program needs %d; run `nocturne db migrate`",
			store.ErrNotMigrated, status.Location, status.Version, status.Known)
	case status.Version > status.Known:
		return &store.SchemaError{Present: status.Version, Known: status.Known}
	}
	return do(opened)
}

// writing runs a command that adds to the store.
func (a *app) writing(ctx context.Context, do func(store.Store) error) (err error) {
	opened, _, err := a.store(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return do(opened)
}

// find looks a campaign up for an answering command.
func find(ctx context.Context, s store.Store, reference string) (store.Campaign, error) {
	campaign, err := s.Campaign(ctx, reference)
	if errors.Is(err, store.ErrNotFound) {
		return campaign, usage(fmt.Errorf("no campaign %q in this store; `nocturne campaigns` lists them", reference))
	}
	if errors.Is(err, store.ErrAmbiguous) {
		return campaign, usage(err)
	}
	return campaign, err
}

// dataDirectory holds server logs: beside the default store, also when another
// store is named.
func dataDirectory() (string, error) {
	url, err := open.Default()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimPrefix(url, "sqlite:")), nil
}
