package supervise

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// cappedLog is a file of bounded size that keeps the first and the newest part
// of what is written to it: the head, which has the server's arguments and its
// versions, and the end, which has the reason of its death.
//
// While it is open, the newest part lies in two files beside it, PATH.tail and
// the older PATH.tail.old, each up to a quarter of the limit. Close appends them
// to the head with a line that says how much was left out between.
type cappedLog struct {
	path    string
	segment int64 // size at which the tail moves on to a new file

	mu       sync.Mutex
	head     *os.File
	headLeft int64
	tail     *os.File
	tailSize int64
	oldSize  int64 // size of PATH.tail.old, -1 when there is none
	omitted  int64
}

// openLog creates the log, replacing an older one. Only its owner may read it:
// servers print prompts and keys.
func openLog(path string, limit int64) (*cappedLog, error) {
	l := &cappedLog{path: path, segment: max(limit/4, 1), headLeft: max(limit/2, 1), oldSize: -1}
	for _, leftover := range []string{l.tailPath(), l.oldPath()} {
		if err := os.Remove(leftover); err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
	var err error
	l.head, err = os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return l, err
}

func (l *cappedLog) tailPath() string { return l.path + ".tail" }
func (l *cappedLog) oldPath() string  { return l.path + ".tail.old" }

// Write adds p to the log.
func (l *cappedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	total := len(p)
	if l.headLeft > 0 {
		n := min(int64(len(p)), l.headLeft)
		if _, err := l.head.Write(p[:n]); err != nil {
			return 0, err
		}
		l.headLeft -= n
		p = p[n:]
	}
	for len(p) > 0 {
		if err := l.rotate(); err != nil {
			return total - len(p), err
		}
		n := min(int64(len(p)), l.segment-l.tailSize)
		if _, err := l.tail.Write(p[:n]); err != nil {
			return total - len(p), err
		}
		l.tailSize += n
		p = p[n:]
	}
	return total, nil
}

// rotate makes room in the tail.
func (l *cappedLog) rotate() error {
	if l.tail != nil && l.tailSize < l.segment {
		return nil
	}
	if l.tail != nil {
		if err := l.tail.Close(); err != nil {
			return err
		}
		if err := os.Rename(l.tailPath(), l.oldPath()); err != nil {
			return err
		}
		l.omitted += max(l.oldSize, 0)
		l.oldSize = l.tailSize
	}
	tail, err := os.OpenFile(l.tailPath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l.tail, l.tailSize = tail, 0
	return nil
}

// Close joins head and tail.
func (l *cappedLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.head.Close()
	if l.tail == nil {
		return l.head.Close()
	}
	if err := l.tail.Close(); err != nil {
		return err
	}
	if l.omitted > 0 {
		if _, err := fmt.Fprintf(l.head, "\n[... %d bytes left out ...]\n", l.omitted); err != nil {
			return err
		}
	}
	if l.oldSize >= 0 {
		if err := l.join(l.oldPath()); err != nil {
			return err
		}
	}
	if err := l.join(l.tailPath()); err != nil {
		return err
	}
	return l.head.Close()
}

// join moves the content of a tail file to the end of the head.
func (l *cappedLog) join(path string) error {
	part, err := os.Open(path)
	if err != nil {
		return err
	}
	defer part.Close()
	if _, err := io.Copy(l.head, part); err != nil {
		return err
	}
	return os.Remove(path)
}
