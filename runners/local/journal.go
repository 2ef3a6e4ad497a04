package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"nocturne/runners"
	"nocturne/runners/supervise"
)

// The journal says which launches are alive on which GPUs, one file a launch.
// It outlives the tuner, as its lock does not: whoever locks a GPU next cleans
// up what a killed tuner left on it, whatever store that one used.

// journalSuffix ends the name of a launch's file.
const journalSuffix = ".launch"

// journalEntry is the content of a launch's file.
type journalEntry struct {
	Resources []string       `json:"resources"`
	Launch    runners.Launch `json:"launch"`
}

// journalDirectory belongs to this user alone: what it says is killed.
func (h *Host) journalDirectory() (string, error) {
	path := filepath.Join(h.lockDirectory, fmt.Sprintf("nocturne-launches-%d", os.Getuid()))
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("journal of launches: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return "", fmt.Errorf("journal of launches %s: %w", path, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || int(stat.Uid) != os.Getuid() || stat.Mode&0o077 != 0 {
		return "", fmt.Errorf("journal of launches: %s must be a directory that only user %d may open; remove it", path, os.Getuid())
	}
	return path, nil
}

// record writes a launch into the journal before its server starts. Without a
// lock there is no campaign, and nobody who would look.
func (h *Host) record(launch runners.Launch) (remove func(), err error) {
	h.mutex.Lock()
	resources := slices.Clone(h.locked)
	h.mutex.Unlock()
	if len(resources) == 0 {
		return func() {}, nil
	}
	directory, err := h.journalDirectory()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(journalEntry{Resources: resources, Launch: launch})
	if err != nil {
		return nil, fmt.Errorf("journal of launches: %w", err)
	}
	path := filepath.Join(directory, launch.Marker+journalSuffix)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("journal of launches: %w", err)
	}
	return func() { _ = os.Remove(path) }, nil // a file too many costs one look
}

// recoverJournal ends what earlier launches left on the resources, which are
// locked: no living tuner owns it.
func (h *Host) recoverJournal(ctx context.Context, resources []string) error {
	directory, err := h.journalDirectory()
	if err != nil {
		return err
	}
	files, err := os.ReadDir(directory)
	if err != nil {
		return fmt.Errorf("journal of launches: %w", err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), journalSuffix) {
			continue
		}
		path := filepath.Join(directory, file.Name())
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its tuner has stopped it meanwhile
		}
		var entry journalEntry
		if err == nil && json.Unmarshal(text, &entry) != nil {
			err = os.Remove(path) // torn while the machine went down: nothing ran yet
		}
		if err != nil {
			return fmt.Errorf("journal of launches: %w", err)
		}
		if !slices.ContainsFunc(entry.Resources, func(r string) bool { return slices.Contains(resources, r) }) {
			continue
		}
		if err := supervise.Recover(ctx, entry.Launch); err != nil {
			return fmt.Errorf("an earlier launch (log %s) is still alive, and nothing may be launched beside it: %w", entry.Launch.LogPath, err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("journal of launches: %w", err)
		}
	}
	return nil
}
