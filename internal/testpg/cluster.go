package testpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	superuser = "nocturne"
	// folderPattern is short, since the path of a socket has at most 107 bytes.
	folderPattern = "nocturne-pg-"
	startTimeout  = 60 * time.Second
	startProbe    = 25 * time.Millisecond
)

// cluster is a running server and its folder.
type cluster struct {
	folder string
	lock   *os.File // held while the folder is in use
	server *exec.Cmd
	done   chan error // the server's end
	log    bytes.Buffer
}

// startCluster makes a cluster and waits until it answers.
func startCluster() (*cluster, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	removeStale()
	folder, err := os.MkdirTemp(baseFolder(), folderPattern)
	if err != nil {
		return nil, err
	}
	c := &cluster{folder: folder, done: make(chan error, 1)}
	if err := c.begin(programs, account); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// baseFolder holds the clusters' folders: the usual temporary folder, unless a
// socket in it would have too long a path, or its mode may shut the server's
// user out.
func baseFolder() string {
	const longest = 60
	if base := os.TempDir(); len(base) <= longest && os.Geteuid() != 0 {
		return base
	}
	return "/tmp"
}

func (c *cluster) begin(programs string, account *syscall.Credential) (err error) {
	if c.lock, err = lockFolder(c.folder); err != nil {
		return err
	}
	if account != nil {
		if err := os.Chown(c.folder, int(account.Uid), int(account.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(c.folder, "data")
	initdb := c.command(account, filepath.Join(programs, "initdb"), "-D", data, "-U", superuser, "-A", "trust",
		"--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C.UTF-8")
	if output, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	// Nothing has to outlive the tests.
	c.server = c.command(account, filepath.Join(programs, "postgres"), "-D", data,
		"-c", "listen_addresses=", "-c", "unix_socket_directories="+c.folder,
		"-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum=off", "-c", "max_connections=200")
	c.server.Stdout, c.server.Stderr = &c.log, &c.log
	if err := c.launch(); err != nil {
		return err
	}
	return c.waitUntilReady()
}

// command prepares a program of the server in a clean environment.
func (c *cluster) command(account *syscall.Credential, program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = c.folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + c.folder}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	return cmd
}

// launch starts the server so that the kernel stops it when this process ends,
// however it ends. The kernel does so at the end of the thread that started the
// server, so that thread waits for it.
func (c *cluster) launch() error {
	c.server.SysProcAttr.Pdeathsig = syscall.SIGQUIT // "immediate shutdown"
	c.server.SysProcAttr.Setpgid = true              // Ctrl-C is for the tests, which stop the server
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.server.Start()
		started <- err
		if err == nil {
			c.done <- c.server.Wait()
		}
	}()
	err := <-started
	if err != nil {
		c.server = nil
	}
	return err
}

func (c *cluster) waitUntilReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	probe := time.NewTicker(startProbe)
	defer probe.Stop()
	for {
		err := c.execute(ctx, "select 1")
		if err == nil {
			return nil
		}
		select {
		case end := <-c.done:
			c.server = nil
			return fmt.Errorf("the server ended at once: %w\n%s", end, c.log.String())
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer after %v: %w", startTimeout, err)
		case <-probe.C:
		}
	}
}

// stop ends the server and removes the folder.
func (c *cluster) stop() error {
	var errs []error
	if c.server != nil {
		errs = append(errs, c.server.Process.Signal(syscall.SIGINT), <-c.done) // "fast shutdown"
	}
	errs = append(errs, os.RemoveAll(c.folder))
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	return errors.Join(errs...)
}

// lockFolder marks a folder as in use for as long as this process lives.
func lockFolder(folder string) (*os.File, error) {
	handle, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(handle.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	return handle, nil
}

// staleAfter is when a folder without a lock is not one that is being made.
const staleAfter = time.Minute

// removeStale removes the folders of test binaries that were killed.
func removeStale() {
	folders, err := filepath.Glob(filepath.Join(baseFolder(), folderPattern+"*"))
	if err != nil {
		return // the pattern is well formed
	}
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue
		}
		if lock, err := lockFolder(folder); err == nil {
			_ = os.RemoveAll(folder) // another user's folder stays
			_ = lock.Close()
		}
	}
}

// findPrograms returns the folder of initdb and postgres.
func findPrograms() (string, error) {
	var candidates []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if target, err := filepath.EvalSymlinks(path); err == nil {
			candidates = append(candidates, filepath.Dir(target))
		}
	}
	if output, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(output)))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"} {
		if found, err := filepath.Glob(pattern); err == nil {
			candidates = append(candidates, found...)
		}
	}
	for _, folder := range candidates {
		if isProgram(filepath.Join(folder, "initdb")) && isProgram(filepath.Join(folder, "postgres")) {
			return folder, nil
		}
	}
	return "", errors.New("no PostgreSQL server programs (initdb, postgres) were found on PATH, by pg_config or in /usr/lib/postgresql: " +
		"apt-get install postgresql")
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// serverAccount is the user that the server runs as: nil for the present one,
// and another than root, whom the server refuses.
func serverAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(account.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(account.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody to run it as")
}
