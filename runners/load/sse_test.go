package load

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readAll returns the data of all events of a stream; failed ones are marked.
func readAll(source io.Reader) ([]string, error) {
	var r eventReader
	r.reset(source)
	var all []string
	for {
		e, err := r.next()
		if err != nil {
			return all, err
		}
		mark := ""
		if e.failed {
			mark = "failed:"
		}
		all = append(all, mark+string(e.data))
	}
}

var streams = []struct {
	name, stream string
	want         []string
}{
	{"with a space", "data: {\"a\":1}\n\ndata: [DONE]\n\n", []string{`{"a":1}`, "[DONE]"}},
	{"without a space", "data:{\"a\":1}\n\ndata:[DONE]\n\n", []string{`{"a":1}`, "[DONE]"}},
	{"only one space is stripped", "data:  x\n\n", []string{" x"}},
	{"spaces after the data", "data: {\"a\":1}  \t\n\n", []string{`{"a":1}`}},
	{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
	{"comments", ": ping\n\n:\n\ndata: a\n: ping\n\n", []string{"a"}},
	{"several lines of data", "data: {\ndata: \"a\":1}\n\n", []string{"{\n\"a\":1}"}},
	{"empty data", "data:\n\ndata: a\n\n", []string{"", "a"}},
	{"no blank line at the end", "data: a\n\ndata: b\n", []string{"a", "b"}},
	{"no line end at the end", "data: a\n\ndata: [DONE]", []string{"a", "[DONE]"}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}},
	{"other fields", "id: 7\nevent: message\nretry: 10\ndata: a\n\n", []string{"a"}},
	{"error event", "event: error\ndata: {\"m\":1}\n\ndata: b\n\n", []string{`failed:{"m":1}`, "b"}},
	{"an error event without data marks nothing", "event: error\n\ndata: b\n\n", []string{"b"}},
	{"error field of older llama.cpp", "error: {\"code\":500}\n\n", []string{`failed:{"code":500}`}},
	{"several events at once", "data: a\n\ndata: b\n\ndata: c\n\n", []string{"a", "b", "c"}},
	{"blank lines between", "\n\n\ndata: a\n\n\n\ndata: b\n\n", []string{"a", "b"}},
	{"a long line", "data: " + strings.Repeat("x", 300_000) + "\n\ndata: b\n\n", []string{strings.Repeat("x", 300_000), "b"}},
	{"no event stream", "{\"object\":\"text_completion\"}\n", nil},
	{"nothing", "", nil},
}

func TestEventReader(t *testing.T) {
	for _, test := range streams {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			"by halves": iotest.HalfReader, "with the error": iotest.DataErrReader,
		} {
			t.Run(test.name+" "+how, func(t *testing.T) {
				got, err := readAll(wrap(strings.NewReader(test.stream)))
				if !errors.Is(err, io.EOF) {
					t.Errorf("error %v, want EOF", err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestEventReader_Failures(t *testing.T) {
	broken := errors.New("connection reset")
	got, err := readAll(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("broken stream: %q, %v; want the first event and the error", got, err)
	}
	if _, err := readAll(endless{}); !errors.Is(err, errEventTooLong) {
		t.Errorf("endless line: %v", err)
	}
	if _, err := readAll(io.MultiReader(strings.NewReader("data: a\n"), endlessLines{})); !errors.Is(err, errEventTooLong) {
		t.Errorf("endless event: %v", err)
	}
	if _, err := readAll(idle{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that brings nothing: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

type endlessLines struct{}

func (endlessLines) Read(p []byte) (int, error) {
	line := "data: " + strings.Repeat("x", 4000) + "\n"
	return copy(p, line[:min(len(p), len(line))]), nil
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// An event has the time of the read that brought the end of its data, however
// it was cut, and whenever its blank line came.
func TestEventReader_Stamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		start := time.Now()
		go func() {
			for _, piece := range []string{"data: a", "a\n", "\ndata: b\n\ndata: c\n\ndata: d\nda", "ta: e\n", "\n"} {
				time.Sleep(time.Second)
				_, _ = io.WriteString(writer, piece)
			}
			writer.Close()
		}()
		var r eventReader
		r.reset(reader)
		for _, want := range []struct {
			data string
			at   time.Duration
		}{{"aa", 2 * time.Second}, {"b", 3 * time.Second}, {"c", 3 * time.Second}, {"d\ne", 4 * time.Second}} {
			e, err := r.next()
			if err != nil || string(e.data) != want.data || e.at.Sub(start) != want.at {
				t.Errorf("event %q at %v, %v; want %q at %v", e.data, e.at.Sub(start), err, want.data, want.at)
			}
		}
	})
}

func TestEventReader_UsualEventAllocatesNothing(t *testing.T) {
	stream := strings.Repeat(chunkEvent, 100)
	source := strings.NewReader(stream)
	var r eventReader
	r.reset(source)
	allocations := testing.AllocsPerRun(50, func() {
		source.Reset(stream)
		r.reset(source)
		for range 100 {
			if _, err := r.next(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocations > 0 {
		t.Errorf("%v allocations for 100 events", allocations)
	}
}

// FuzzEventReader checks that the events do not depend on how the stream is
// cut into reads, and that they agree with a plain reading of the format.
func FuzzEventReader(f *testing.F) {
	for _, test := range streams {
		if len(test.stream) < 1000 {
			f.Add([]byte(test.stream))
		}
	}
	f.Add([]byte("data: a\r\rdata\n: \n\xef\xbb\xbfdata: b\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		want := plainEvents(string(stream))
		for name, source := range map[string]io.Reader{
			"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		} {
			got, err := readAll(source)
			if !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
		}
	})
}

// plainEvents reads a whole stream in the simplest way.
func plainEvents(stream string) []string {
	var events []string
	var data []string
	failed := false
	finish := func() {
		if data != nil {
			text := strings.Join(data, "\n")
			if failed {
				text = "failed:" + text
			}
			events = append(events, text)
		}
		data, failed = nil, false
	}
	for i, line := range strings.Split(stream, "\n") {
		if i == 0 {
			line = strings.TrimPrefix(line, "\xef\xbb\xbf")
		}
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			finish()
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(strings.TrimRight(value, " \t"), " ")
		switch name {
		case "data", "error":
			failed = failed || name == "error"
			data = append(data, value)
		case "event":
			failed = value == "error"
		}
	}
	finish()
	return events
}
