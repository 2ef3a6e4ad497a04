package load

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// replay is a connection that answers every request with the same response,
// one piece for each read. It costs the generator what a socket would, without
// the system calls.
type replay struct {
	pieces []string
	next   int
	asked  chan struct{} // a request has been written
	closed chan struct{}
	rest   string
}

func (r *replay) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.next == 0 {
			select {
			case <-r.asked:
			case <-r.closed:
				return 0, net.ErrClosed
			}
		}
		r.rest = r.pieces[r.next]
		r.next = (r.next + 1) % len(r.pieces)
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *replay) Write(p []byte) (int, error) {
	// The transport writes head and body of a small request at once.
	r.asked <- struct{}{}
	return len(p), nil
}

func (r *replay) Close() error {
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
	return nil
}
func (r *replay) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (r *replay) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// chunked frames text for HTTP/1.1.
func chunked(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }

const responseHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// tokenEvents are n chunks of one token, as the server of the protocol sends
// them (about 200 bytes each; SGLang's text grows).
func tokenEvents(protocol Protocol, n int) []string {
	events := make([]string, n)
	text := ""
	for i := range events {
		text += " word"
		switch protocol {
		case OpenAICompletions:
			events[i] = `data: {"id":"cmpl-4f0c2a6f8d2b4b0f9d6c","object":"text_completion","created":1790000000,"model":"model","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n"
		case OpenAIChat:
			events[i] = `data: {"id":"chatcmpl-4f0c2a6f8d2b4b0f9d6c","object":"chat.completion.chunk","created":1790000000,"model":"model","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n"
		case SGLangGenerate:
			events[i] = fmt.Sprintf(`data: {"text":%q,"output_ids":[785],"meta_info":{"id":"4f0c2a6f8d2b4b0f9d6c","finish_reason":null,"prompt_tokens":10,"weight_version":"default","total_retractions":0,"completion_tokens":%d,"cached_tokens":0}}`+"\n\n", text, i+1)
		}
	}
	return events
}

// BenchmarkStreamedTokens is the cost of a token in the generator, from the
// bytes of a connection to the metrics, over a connection in memory that hands
// out the given number of events with each read: tokens for each second of
// processor time, so that what else the machine does matters little.
func BenchmarkStreamedTokens(b *testing.B) {
	for _, protocol := range []Protocol{OpenAICompletions, OpenAIChat, SGLangGenerate} {
		for _, perRead := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/events-per-read=%d", protocol, perRead), func(b *testing.B) {
				benchmarkReplay(b, protocol, perRead)
			})
		}
	}
}

const benchmarkTokens = 512

func benchmarkReplay(b *testing.B, protocol Protocol, perRead int) {
	pieces := []string{responseHead}
	for events := range slices.Chunk(tokenEvents(protocol, benchmarkTokens), perRead) {
		piece := ""
		for _, event := range events {
			piece += chunked(event)
		}
		pieces = append(pieces, piece)
	}
	end := finishEvent + usageEvent(benchmarkTokens)
	if protocol == SGLangGenerate {
		end = ""
	}
	pieces = append(pieces, chunked(end+doneEvent)+"0\r\n\r\n")
	client, err := New(Target{BaseURL: "http://127.0.0.1:1", Model: "m", Protocol: protocol,
		Dial: func(context.Context, string, string) (net.Conn, error) {
			return &replay{pieces: pieces, asked: make(chan struct{}, 1), closed: make(chan struct{})}, nil
		}})
	if err != nil {
		b.Fatal(err)
	}
	requests := max(b.N/benchmarkTokens, 1)
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime()
	o, err := client.Round(b.Context(), RoundSpec{Prompts: prompts(requests), Concurrency: 16, OutputTokens: benchmarkTokens})
	used := processorTime() - before
	b.StopTimer()
	if err != nil || o.Metrics[MetricCompleted] != float64(requests) || o.Metrics[MetricOutputTokens] != float64(requests*benchmarkTokens) {
		b.Fatalf("%v, metrics %v, failures %v", err, o.Metrics, o.Failures)
	}
	tokens := float64(requests * benchmarkTokens)
	b.ReportMetric(tokens/used.Seconds(), "tokens/cpu-s")
	b.ReportMetric(float64(used.Nanoseconds())/tokens, "cpu-ns/token")
}

// BenchmarkScheduledTokens measures against another process that sends the
// chunks of one token of many streams over TCP, one write each, on an absolute
// schedule: a chunk for each stream every streams/rate seconds, the streams
// evenly offset. It reports
//
//   - tokens/cpu-s: tokens for each second of processor time of this process,
//     kernel included;
//   - gap-error-us and p99-gap-error-us: by how much a measured chunk gap differs
//     from the gap between the sends, which the server notes just before each
//     write; with p99-late-us, from send to stamp, these are what kernel and
//     generator add.
//
// Run with -cpu 1 -benchtime 1x on a machine with two idle cores or more: on a
// busy one the gap errors are those of its scheduler.
func BenchmarkScheduledTokens(b *testing.B) {
	for _, load := range []struct{ streams, rate int }{{1, 200}, {64, 6_400}, {256, 25_600}, {256, 100_000}, {256, 200_000}, {256, 300_000}} {
		b.Run(fmt.Sprintf("streams=%d/tokens-per-s=%d", load.streams, load.rate), func(b *testing.B) {
			benchmarkSchedule(b, load.streams, load.rate)
		})
	}
}

const scheduledSeconds = 3

func benchmarkSchedule(b *testing.B, streams, rate int) {
	tokens := rate * scheduledSeconds / streams
	address, sent := startScheduledServer(b, streams, rate, tokens)
	client, err := New(Target{BaseURL: "http://" + address, Model: "m", Protocol: OpenAICompletions})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	before := processorTime()
	o, err := client.Round(b.Context(), RoundSpec{Prompts: prompts(streams), Concurrency: streams, OutputTokens: tokens, KeepDetails: true})
	used := processorTime() - before
	b.StopTimer()
	if err != nil || o.Metrics[MetricCompleted] != float64(streams) {
		b.Fatalf("%v, metrics %v, failures %v", err, o.Metrics, o.Failures)
	}
	var errors, late []time.Duration
	for i, sends := range sent() {
		d := o.Details[i]
		if len(d.Gaps) != len(sends)-1 {
			b.Fatalf("stream %d: %d gaps of %d sends", i, len(d.Gaps), len(sends))
		}
		at := o.Started.Add(d.Start + d.TTFT).UnixNano()
		late = append(late, time.Duration(at-sends[0]))
		for k, g := range d.Gaps {
			at += int64(g)
			late = append(late, time.Duration(at-sends[k+1]))
			errors = append(errors, (g - time.Duration(sends[k+1]-sends[k])).Abs())
		}
	}
	slices.Sort(errors)
	slices.Sort(late)
	b.ReportMetric(o.Metrics[MetricOutputThroughput], "tokens/s")
	b.ReportMetric(o.Metrics[MetricOutputTokens]/used.Seconds(), "tokens/cpu-s")
	b.ReportMetric(1000*interpolated(errors, 50), "gap-error-us")
	b.ReportMetric(1000*interpolated(errors, 99), "p99-gap-error-us")
	b.ReportMetric(1000*interpolated(late, 99), "p99-late-us")
	b.ReportMetric(0, "ns/op")
}

const scheduledServerEnv = "LOAD_TEST_SCHEDULED_SERVER"

func TestMain(m *testing.M) {
	if settings := os.Getenv(scheduledServerEnv); settings != "" {
		if err := scheduledServer(settings, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// startScheduledServer starts the server in a process of its own. sent ends it
// and returns when it sent each token of each stream, in nanoseconds since the
// epoch.
func startScheduledServer(b *testing.B, streams, rate, tokens int) (address string, sent func() [][]int64) {
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", scheduledServerEnv, streams, rate, tokens), "GOMAXPROCS=2")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	address, err = lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(address), func() (all [][]int64) {
		stdin.Close()
		if err := json.NewDecoder(lines).Decode(&all); err != nil {
			b.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			b.Fatal(err)
		}
		return all
	}
}

// scheduledServer waits until every stream has its request, then sends the
// tokens of all on one schedule, and tells the times when its input ends.
func scheduledServer(settings string, stop io.Reader, out io.Writer) error {
	var streams, rate, tokens int
	if _, err := fmt.Sscan(settings, &streams, &rate, &tokens); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, listener.Addr())
	connections := make([]net.Conn, streams)
	for range streams {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		buffer := make([]byte, 4096)
		n, err := connection.Read(buffer)
		if err != nil {
			return err
		}
		index := 0
		if _, text, found := strings.Cut(string(buffer[:n]), `"prompt":"prompt `); !found {
			return fmt.Errorf("no prompt in %q", buffer[:n])
		} else if _, err := fmt.Sscan(strings.ReplaceAll(text, `"`, " "), &index); err != nil {
			return err
		}
		connections[index] = connection
	}
	sent := make([][]int64, streams)
	for i, connection := range connections {
		sent[i] = make([]int64, 0, tokens)
		if _, err := io.WriteString(connection, responseHead); err != nil {
			return err
		}
	}
	event := []byte(chunked(tokenEvents(OpenAICompletions, 1)[0]))
	start := time.Now()
	for k := range tokens {
		for i, connection := range connections {
			due := time.Duration(k*streams+i) * time.Second / time.Duration(rate)
			if wait := due - time.Since(start); wait > 50*time.Microsecond {
				time.Sleep(wait)
			}
			sent[i] = append(sent[i], time.Now().UnixNano())
			if _, err := connection.Write(event); err != nil {
				return err
			}
		}
	}
	for _, connection := range connections {
		if _, err := io.WriteString(connection, chunked(finishEvent+usageEvent(tokens)+doneEvent)+"0\r\n\r\n"); err != nil {
			return err
		}
	}
	_, _ = io.Copy(io.Discard, stop) // until the benchmark has its measurement
	return json.NewEncoder(out).Encode(sent)
}
