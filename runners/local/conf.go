package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strconv"

	"nocturne/nccl"
	"nocturne/runners/servers"
)

// confFiles lists the configuration files that NCCL would read for a process
// with the given environment, whatever its version.
func confFiles(env map[string]string) []string {
	home := ""
	if account, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		home = account.HomeDir
	}
	return nccl.ConfFiles(nccl.Version{}, env, home)
}

// checkConfFiles refuses a launch in which a configuration file sets a variable
// that is being tuned: NCCL fills every absent variable from there, so "absent"
// would not be what it says, and no environment would show it.
func checkConfFiles(files []string, tuned []string, env map[string]string) error {
	for _, path := range files {
		file, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fail(servers.ReasonConfUnreadable, "%v: what it sets would be part of every trial", err)
		}
		settings, err := nccl.ParseConf(file)
		file.Close()
		if err != nil {
			return fail(servers.ReasonConfUnreadable, "%s: %v", path, err)
		}
		for _, setting := range settings {
			if _, given := env[setting.Name]; given || !slices.Contains(tuned, setting.Name) {
				continue
			}
			return fail(servers.ReasonConfConflict, "%s", fmt.Sprintf(
				"%s:%d sets %s=%s, which is being tuned and absent from this configuration: remove the line for the campaign, or take the variable out of the space",
				path, setting.Line, setting.Name, setting.Value))
		}
	}
	return nil
}
