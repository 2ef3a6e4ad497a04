package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOutputBothStreams(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "print", `one\n`, `two\r\n`, `three`))
	awaitDone(t, p)
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	want := []Line{{Text: "one", Stream: Stdout}, {Text: "two", Stream: Stdout}, {Text: "three", Stream: Stdout}}
	if diff := cmp.Diff(want, whole(rest(t, p))); diff != "" {
		t.Error(diff)
	}
	log, err := os.ReadFile(p.Launch().LogPath)
	if err != nil || string(log) != "one\ntwo\r\nthree" {
		t.Errorf("log %q, %v", log, err)
	}
	info, err := os.Stat(p.Launch().LogPath)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("log mode %v, %v", info.Mode(), err)
	}
}

// whole leaves out partial lines: whether there are any is a matter of timing.
func whole(lines []Line) []Line {
	return slices.DeleteFunc(lines, func(l Line) bool { return l.Partial })
}

// The lines end by themselves when the whole tree has ended, without a Stop.
func TestOutputEndsWithTheTree(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "print", `out\n`))
	if lines := whole(rest(t, p)); len(lines) != 1 {
		t.Errorf("lines %v", lines)
	}
	if log, err := os.ReadFile(p.Launch().LogPath); err != nil || string(log) != "out\n" {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestOutputShowsARestingLine(t *testing.T) {
	t.Parallel()
	p := start(t, helperSpec(t, "progress"))
	for {
		line, err := p.NextLine(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if line.Text == "loading 10%" {
			if !line.Partial {
				t.Errorf("a line without an end is not partial: %+v", line)
			}
			return
		}
	}
}

// A server that floods its output is never made to wait for a tuner that does
// not read, and the log stays within its limit.
func TestOutputNobodyReads(t *testing.T) {
	t.Parallel()
	const total, limit = 20 << 20, 1 << 20
	spec := helperSpec(t, "flood", fmt.Sprint(total))
	spec.LogLimit = limit
	p := start(t, spec)
	awaitDone(t, p)
	if err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(p.Launch().LogPath)
	if err != nil {
		t.Fatal(err)
	}
	if len(log) > limit+100 || len(log) < limit/2+limit/4 {
		t.Errorf("the log has %d bytes, its limit is %d", len(log), limit)
	}
	newest := fmt.Sprintf("line %9d x", total/100-1)
	if !bytes.HasPrefix(log, []byte("line         0 x")) || !bytes.Contains(log[len(log)-200:], []byte(newest)) {
		t.Errorf("the log begins %.20q and ends %q", log, log[len(log)-200:])
	}
	seen, skipped := 0, 0
	for _, line := range rest(t, p) {
		skipped += line.Skipped
		if !line.Partial {
			seen++
		}
	}
	if seen+skipped != total/100+1 || skipped == 0 {
		t.Errorf("%d lines read and %d skipped, the server wrote %d", seen, skipped, total/100+1)
	}
}

func TestOutputWithoutLog(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "print", `out\n`)
	spec.LogPath = ""
	if lines := whole(rest(t, start(t, spec))); len(lines) != 1 {
		t.Errorf("lines %v", lines)
	}
}

// failingLog is a full disk.
type failingLog struct{}

func (failingLog) Write([]byte) (int, error) { return 0, os.ErrClosed }
func (failingLog) Close() error              { return os.ErrClosed }

func TestOutputSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	var warnings []string
	o, writers, err := newOutput(failingLog{}, func(text string) { warnings = append(warnings, text) })
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go o.run(write)
	fmt.Fprintln(writers[0], "a")
	fmt.Fprintln(writers[0], "b")
	for _, w := range writers {
		w.Close()
	}
	queue := newLineQueue()
	receiveLines(read, queue)
	<-o.done
	if first, err := queue.pop(testContext(t)); err != nil || first.Text != "a" {
		t.Errorf("line %v, %v", first, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "log is incomplete") {
		t.Errorf("warnings %q", warnings)
	}
	read.Close()
}

func TestLogKeepsFirstAndNewest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		limit int64
		write string
		want  string
	}{
		"short":           {16, "abc", "abc"},
		"head full":       {16, "01234567", "01234567"},
		"into the tail":   {16, "01234567ab", "01234567ab"},
		"one tail":        {16, "01234567abcd", "01234567abcd"},
		"two tails":       {16, "01234567abcdefgh", "01234567abcdefgh"},
		"one left out":    {16, "01234567abcdefghi", "01234567\n[... 4 bytes left out ...]\nefghi"},
		"two left out":    {16, "01234567abcdefghijkl!", "01234567\n[... 8 bytes left out ...]\nijkl!"},
		"tiny limit":      {1, "abcd", "a\n[... 1 bytes left out ...]\ncd"},
		"nothing written": {16, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path+".tail.old", []byte("of an earlier launch"), 0o600); err != nil {
				t.Fatal(err)
			}
			writeLog(t, path, test.limit, test.write)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != test.want {
				t.Errorf("log %q, %v, want %q", got, err, test.want)
			}
			if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
				t.Errorf("left beside the log: %v", left)
			}
		})
	}
}

func writeLog(t interface{ Fatal(...any) }, path string, limit int64, pieces ...string) {
	log, err := openLog(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		if n, err := log.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever is written, and however: the first half is there, the newest quarter
// is there, and the limit holds.
func TestLogProperties(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(4, 200).Draw(t, "limit")
		pieces := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,50}`), 0, 20).Draw(t, "pieces")
		path := filepath.Join(dir, "log")
		writeLog(t, path, limit, pieces...)
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(pieces, "")
		head, tail := all[:min(len(all), int(limit/2))], all[max(0, len(all)-int(limit/4)):]
		if !strings.HasPrefix(string(got), head) || !strings.HasSuffix(string(got), tail) {
			t.Fatalf("log %q of %q misses head %q or tail %q", got, all, head, tail)
		}
		if note := strings.Index(string(got), "\n[..."); note < 0 && string(got) != all {
			t.Fatalf("log %q of %q, and nothing says what is missing", got, all)
		} else if kept := len(got) - strings.Count(string(got), "\n")*20; kept > int(limit) {
			t.Fatalf("log of %d bytes, limit %d", len(got), limit)
		}
	})
}
