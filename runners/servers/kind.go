package servers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Kind describes one kind of server.
type Kind struct {
	// Name is the word of the campaign file: "sglang".
	Name string
	// Title is the name that people use: "SGLang".
	Title string
	// Ready says how the server tells that it can serve.
	Ready Ready
	// Models is the path that lists model ids in the OpenAI shape.
	Models string
	// Body holds fields that every request of the load generator carries beside
	// the standard ones.
	Body map[string]any
	// Streaming holds further stream_options of the OpenAI endpoints: where a
	// server tells its token count with each chunk, the time between tokens is
	// known and not estimated.
	Streaming map[string]any
	// Header is added to every request of the load generator.
	Header map[string]string
	// Flush empties the prefix cache; nil where the server cannot.
	Flush *Flush
	// Info lists the pages on which the running server tells of itself.
	Info []Info
	// Metrics is where it keeps its counters; nil when it has none that are known.
	Metrics *Metrics
	// Installed says how the version is found before anything is launched.
	Installed VersionSource
	// Differences set older versions apart from what this table says.
	Differences []Difference
	// Launch holds variables that a launch needs beside what the file asks for.
	Launch []LaunchVariable
	// Written lists variables that the server writes itself before it starts its
	// workers.
	Written []WrittenVariable
	// Speculation says how speculative decoding is written; nil where a campaign
	// must use flags or groups of its own.
	Speculation *Rendering
	// DraftFlags are flags that name a draft model: a file that is missing may be
	// the configuration's fault then.
	DraftFlags []string
	// Rules are what the server does with arguments that do not fit together.
	Rules []Rule
	// Arguments can be read back from the running server, and Rewrites are the
	// changes that it is known to make to them without an error.
	Arguments []Argument
	Rewrites  []Rewrite
	// Limits must be the same in both arms of a comparison and are the server's
	// choice unless they are given.
	Limits []Limit
	// Processes says which processes of the tree count.
	Processes Processes
	// Progress tells phases and facts from log lines.
	Progress []Progress
	// Failures tells what went wrong from log lines. Common patterns come first:
	// they read the inner error of a line that also names a stage.
	Failures []Signature

	prefix *regexp.Regexp
}

// Fields are what every request to an endpoint carries beside the standard
// ones: completions and chat take stream_options, a native endpoint does not.
func (k *Kind) Fields(endpoint string) map[string]any {
	fields := maps.Clone(k.Body)
	if len(k.Streaming) > 0 && (endpoint == "completions" || endpoint == "chat") {
		if fields == nil {
			fields = map[string]any{}
		}
		fields["stream_options"] = k.Streaming
	}
	return fields
}

// Ready says how a server tells that it can serve. Only a real completion
// proves it; this is what is waited for before that is tried.
type Ready struct {
	// Paths are asked in turn: a 404 moves on to the next.
	Paths []string
	// Status is the HTTP status of a server that is ready.
	Status int
	// Timeout bounds one request. SGLang generates a token to answer and may take
	// 20 s to say that it could not.
	Timeout time.Duration
}

// Flush is the request that empties the prefix cache.
type Flush struct {
	Method string
	Path   string
	// Success names a boolean field of the JSON answer that must be true; empty
	// when the status alone tells. A missing field counts as true: newer servers
	// answer with an empty body.
	Success string
	// Refused is the status of a server that cannot flush while requests run; the
	// request is then worth repeating.
	Refused int
}

// LaunchVariable is set for the server unless the campaign sets it itself.
type LaunchVariable struct {
	Name string
	// Value is the value. Empty: the loading limit in whole seconds plus Margin,
	// so that a limit inside the server never fires before ours.
	Value  string
	Margin time.Duration
}

// WrittenVariable is one that the server writes into its own environment, so
// that its workers hold a value that nobody asked for.
type WrittenVariable struct {
	Name string
	// Value is what the server usually writes, Also what some releases or hosts get.
	Value string
	Also  []string
	// Always tells that a value given by the campaign is overwritten as well.
	Always bool
	// When tells which commands it is written under; nil is all.
	When func(Command) bool
}

// kinds is in the order in which people are shown them.
func kinds() []*Kind {
	return []*Kind{&sglang, &vllm, &trtllm, &llamacpp, &custom}
}

// Get returns the kind of that name. Kind "command" has no server and is not
// among them.
func Get(name string) (*Kind, error) {
	for _, kind := range kinds() {
		if kind.Name == name {
			return kind, nil
		}
	}
	return nil, fmt.Errorf("unknown server kind %q, expected one of %s", name, strings.Join(Names(), ", "))
}

// Names lists the server kinds.
func Names() []string {
	var names []string
	for _, kind := range kinds() {
		names = append(names, kind.Name)
	}
	return names
}

// Strip removes the prefix that the server puts before its log lines: time,
// rank, level.
func (k *Kind) Strip(line string) string {
	if k.prefix == nil {
		return line
	}
	if end := k.prefix.FindStringIndex(line); end != nil {
		return line[end[1]:]
	}
	return line
}

// WrittenBy returns what the kind writes into the variable whatever its command
// says, if anything.
func (k *Kind) WrittenBy(variable string) (WrittenVariable, bool) {
	return k.WrittenUnder(Command{}, variable)
}

// WrittenUnder returns what a command of the kind writes into the variable, if
// anything. The first entry that holds counts.
func (k *Kind) WrittenUnder(c Command, variable string) (WrittenVariable, bool) {
	i := slices.IndexFunc(k.Written, func(w WrittenVariable) bool {
		return w.Name == variable && (w.When == nil || w.When(c))
	})
	if i < 0 {
		return WrittenVariable{}, false
	}
	return k.Written[i], true
}

// Writes tells whether a value may come from the server.
func (w WrittenVariable) Writes(value string) bool {
	return value == w.Value || slices.Contains(w.Also, value)
}

// LaunchEnvironment is what the kind adds to the environment of a launch whose
// loading limit is given.
func (k *Kind) LaunchEnvironment(loading time.Duration) map[string]string {
	added := make(map[string]string, len(k.Launch))
	for _, variable := range k.Launch {
		value := variable.Value
		if value == "" {
			value = fmt.Sprint(int64((loading + variable.Margin).Seconds()))
		}
		added[variable.Name] = value
	}
	return added
}

// readableEnvironment keeps /proc/PID/environ readable: py-setproctitle, which
// SGLang and vLLM use to name their workers, writes the title over it unless
// this is set (dvarrazzo/py-setproctitle, README).
var readableEnvironment = LaunchVariable{Name: "SPT_NOENV", Value: "1"}

// has is a condition on a command: one of the flags is given.
func has(flags ...string) func(Command) bool {
	return func(c Command) bool { return c.Has(flags...) }
}
