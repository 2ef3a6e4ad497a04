package supervise

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// F15: variables set for the server do not reach its workers. Each mismatch is
// named with process and variable.
func TestF15_WorkersWithAnotherEnvironment(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "scrub")
	spec.Env["NCCL_PROTO"] = "LL"
	p := start(t, spec)
	workers := awaitAll(t, p, "up", 3)
	v := VerifyEnvironment(members(t, p), map[string]string{"NCCL_PROTO": "LL"}, []string{"NCCL_ALGO"})
	if len(v.Checked) != len(workers) || len(v.Unreadable) != 0 {
		t.Errorf("checked %v, unreadable %v", v.Checked, v.Unreadable)
	}
	var got []string
	for _, m := range v.Mismatches {
		if m.Process.PID == p.PID() {
			t.Errorf("the server itself has the plan's environment: %s", m)
		}
		_, text, _ := strings.Cut(m.String(), "): ")
		got = append(got, text)
	}
	slices.Sort(got)
	want := []string{
		`NCCL_ALGO is "Ring" instead of absent`,
		`NCCL_PROTO is absent instead of "LL"`,
		`NCCL_PROTO is absent instead of "LL"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("mismatches %q, want %q", got, want)
	}
}

func TestVerifyEnvironmentValues(t *testing.T) {
	t.Parallel()
	spec := helperSpec(t, "block")
	spec.Env["NCCL_PROTO"], spec.Env["EMPTY"] = "LL", ""
	p := start(t, spec)
	await(t, p, "up")
	tests := map[string]struct {
		want   map[string]string
		absent []string
		text   string
	}{
		"as planned":       {map[string]string{"NCCL_PROTO": "LL", "EMPTY": ""}, []string{"NCCL_ALGO"}, ""},
		"another value":    {map[string]string{"NCCL_PROTO": "Simple"}, nil, `NCCL_PROTO is "LL" instead of "Simple"`},
		"should be absent": {nil, []string{"EMPTY"}, `EMPTY is "" instead of absent`},
		"should be empty":  {map[string]string{"NCCL_ALGO": ""}, nil, `NCCL_ALGO is absent instead of ""`},
	}
	for name, test := range tests {
		v := VerifyEnvironment(members(t, p), test.want, test.absent)
		text := ""
		for _, m := range v.Mismatches {
			text += m.String()
		}
		if len(v.Checked) != 1 || (text == "") != (test.text == "") || !strings.Contains(text, test.text) {
			t.Errorf("%s: mismatches %q, want %q", name, text, test.text)
		}
	}
}

// A process that wrote its title over its environment is unknown, not missing
// the variable.
func TestClobberedEnvironmentIsUnknown(t *testing.T) {
	t.Parallel()
	for name, title := range map[string]string{"all zero": "", "end of a title": "eduler_TP0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := helperSpec(t, "clobber", title)
			spec.Env["NCCL_PROTO"] = "LL"
			p := start(t, spec)
			await(t, p, "up")
			v := VerifyEnvironment(members(t, p), map[string]string{"NCCL_PROTO": "LL"}, nil)
			if len(v.Unreadable) != 1 || len(v.Mismatches) != 0 || len(v.Checked) != 0 {
				t.Fatalf("verification %+v, want one unreadable process", v)
			}
			if !strings.Contains(v.Unreadable[0].Reason, "SPT_NOENV") {
				t.Errorf("reason %q does not tell what to do", v.Unreadable[0].Reason)
			}
		})
	}
}

func TestReadEnvironmentOfTheDead(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/bin/true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Not waited for: it becomes a zombie.
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.await(testContext(t), patience); err != nil {
		t.Fatal(err)
	}
	if env := ReadEnvironment(id.pid); !env.Gone || env.Known {
		t.Errorf("a zombie has environment %+v", env)
	}
	_ = cmd.Wait()
	if env := ReadEnvironment(id.pid); !env.Gone || env.Known {
		t.Errorf("a process that was collected has environment %+v", env)
	}
	if err := id.signal(9); err != nil {
		t.Errorf("signal to a process that is gone: %v", err)
	}
}

func TestReadEnvironmentOfAKernelThread(t *testing.T) {
	t.Parallel()
	const kthreadd = 2
	comm, err := os.ReadFile("/proc/2/comm")
	if err != nil || strings.TrimSpace(string(comm)) != "kthreadd" {
		t.Log("no kernel threads are visible in this container")
		return
	}
	if env := ReadEnvironment(kthreadd); !env.Gone {
		t.Errorf("a kernel thread has environment %+v", env)
	}
}

func TestParseEnvironmentFirstOneCounts(t *testing.T) {
	t.Parallel()
	got, ok := parseEnvironment([]string{"A=1", "A=2", "B=x=y", "C="})
	if !ok || got["A"] != "1" || got["B"] != "x=y" || got["C"] != "" || len(got) != 3 {
		t.Errorf("parsed %v, %v", got, ok)
	}
}

// A process in the middle of execve(2) is read again rather than taken for one
// without an environment.
func TestReadEnvironmentWhileStarting(t *testing.T) {
	t.Parallel()
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		cmd := exec.Command("/bin/sleep", "60")
		cmd.Env = []string{"NCCL_PROTO=LL"}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		env := ReadEnvironment(cmd.Process.Pid)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if env.Known && env.Variables["NCCL_PROTO"] != "LL" {
			t.Fatalf("environment %+v", env)
		}
	}
}
