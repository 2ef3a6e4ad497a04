package sim

import (
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = goflag.Bool("update", false, "rewrite the generated tables of docs/simulator.md")

const manual = "../../docs/simulator.md"

// The tables of the manual are made from the code.
func TestManualIsUpToDate(t *testing.T) {
	content, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	for name, table := range map[string]string{
		"published": publishedTable(t), "steps": stepsTable(t), "settings": settingsTable(t),
		"machines": machinesTable(t), "faults": faultsTable(),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(text, begin)
		old, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("%s has no table %q", manual, name)
		}
		if old != table && !*update {
			t.Errorf("table %q of %s differs from the code; go test ./runners/sim -run Manual -update rewrites it\nwant:\n%s", name, manual, table)
		}
		text = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(manual, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func table(head string, rows []string) string {
	columns := strings.Count(head, "|") + 1
	return "| " + head + " |\n|" + strings.Repeat(" --- |", columns) + "\n" + strings.Join(rows, "\n") + "\n"
}

func publishedTable(t *testing.T) string {
	var rows []string
	for _, f := range published(t) {
		rows = append(rows, fmt.Sprintf("| %s | %.1f %s | %.1f %s | %+.1f %% |", f.name, f.published, f.unit, f.model, f.unit, 100*f.deviation()))
	}
	return table("figure | published | model | deviation", rows)
}

func stepsTable(t *testing.T) string {
	var rows []string
	for steps := range 11 {
		args := story
		if steps > 0 {
			args = eagle(steps)
		}
		untuned, tuned := predict(t, args, nil), predict(t, args, sixSettings)
		share := func(p Prediction) float64 { return 100 * float64(p.Verify) / float64(p.Step) }
		rows = append(rows, fmt.Sprintf("| %d | %.2f | %.0f %% | %.1f | %.1f | %.0f %% | %.1f | %.1f | %.0f %% |", steps, tuned.AcceptanceLength, 100*tuned.AcceptanceRate,
			untuned.OutputThroughput, toMilliseconds(untuned.Verify), share(untuned), tuned.OutputThroughput, toMilliseconds(tuned.Verify), share(tuned)))
	}
	return table("steps | tokens a cycle | acceptance rate | untuned tok/s | verify ms | of the cycle | tuned tok/s | verify ms | of the cycle", rows)
}

func settingsTable(t *testing.T) string {
	level := map[string]string{"NCCL_P2P_LEVEL": "SYS"}
	ring := edited(level, "NCCL_ALGO", "Ring")
	linked := edited(ring, "NCCL_PROTO", "LL")
	var rows []string
	for _, c := range []struct {
		name string
		env  map[string]string
	}{
		{"nothing", nil},
		{"`NCCL_PROTO=LL`", map[string]string{"NCCL_PROTO": "LL"}},
		{"`NCCL_ALGO=Ring`", map[string]string{"NCCL_ALGO": "Ring"}},
		{"`NCCL_P2P_LEVEL=PHB`", map[string]string{"NCCL_P2P_LEVEL": "PHB"}},
		{"`NCCL_P2P_LEVEL=SYS`", level},
		{"`NCCL_P2P_LEVEL=SYS NCCL_ALGO=Ring`", ring},
		{"`NCCL_P2P_LEVEL=SYS NCCL_ALGO=Ring NCCL_PROTO=LL`", linked},
		{"all six", sixSettings},
		{"the last three, `NCCL_NTHREADS=256`", edited(linked, "NCCL_NTHREADS", "256")},
		{"the last three, `NCCL_NTHREADS=128`", edited(linked, "NCCL_NTHREADS", "128")},
		{"`NCCL_P2P_LEVEL=SYS NCCL_PROTO=LL128` (wrong answers)", edited(level, "NCCL_PROTO", "LL128")},
	} {
		rows = append(rows, fmt.Sprintf("| %s | %.1f | %.1f |", c.name, predict(t, story, c.env).OutputThroughput, predict(t, eagle(2), c.env).OutputThroughput))
	}
	return table("set | no speculation, tok/s | 2 steps, tok/s", rows)
}

func machinesTable(t *testing.T) string {
	var rows []string
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		m := machines[name]
		note := "peer-to-peer works"
		switch {
		case m.nvlink:
			note = "NVSwitch: the server's own all-reduce bypasses NCCL unless --disable-custom-all-reduce"
		case m.hangs != pathLOC:
			note = "peer-to-peer over " + pathNames[m.hangs] + " hangs in the first collective"
		case !m.p2p:
			note = "the driver forbids peer-to-peer: NCCL_P2P_LEVEL is inert"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %.1f GiB | %s, %s | %d | %.1f | %s |", name, m.name, m.memoryGiB, pathNames[m.near], pathNames[m.far], m.channels,
			predict(t, with(story, "--sim-gpu="+name), nil).OutputThroughput, note))
	}
	return table("--sim-gpu | GPU | memory | paths within and between sockets | channels | untuned tok/s | behaviour", rows)
}

func faultsTable() string {
	var rows []string
	for _, f := range faultTable {
		argument := "none"
		if f.argument != takesNothing {
			argument = fmt.Sprintf("%s, default `%s`", f.argument, f.standard)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", f.name, argument, f.summary))
	}
	return table("fault | argument | effect", rows)
}
