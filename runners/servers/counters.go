package servers

// Metrics says where a server keeps its counters, in Prometheus text format.
type Metrics struct {
	Path string
	// Flag switches the page on; empty when it always is.
	Flag string
	// Sums maps our name of a counter to the families that are added up for it,
	// over all ranks and engines: prefix_queries, prefix_hits (input tokens),
	// preemptions, generated_tokens, verify_calls, drafts, draft_tokens,
	// accepted_tokens (without the bonus token).
	Sums map[string][]string
	// ByPosition counts accepted draft tokens by their position, which is in the
	// label named PositionLabel.
	ByPosition, PositionLabel string
	// Lengths says what an acceptance length of the server's own counts, for those
	// who compare servers.
	Lengths string
}

// Off tells whether a command leaves the page switched off.
func (m *Metrics) Off(c Command) bool { return m != nil && m.Flag != "" && !c.Has(m.Flag) }
