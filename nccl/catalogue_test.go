package nccl_test

import (
	"slices"
	"strings"
	"testing"

	"nocturne/nccl"
)

func TestCatalogueIsSound(t *testing.T) {
	kinds := []nccl.Kind{nccl.Integer, nccl.Bytes, nccl.Switch, nccl.Choice, nccl.Level, nccl.List, nccl.Algorithms, nccl.Protocols,
		nccl.Numbers, nccl.Text, nccl.Path, nccl.Undescribed}
	seen := map[string]bool{}
	for _, variable := range nccl.Variables() {
		if seen[variable.Name] {
			t.Errorf("%s is listed twice", variable.Name)
		}
		seen[variable.Name] = true
		if !strings.HasPrefix(variable.Name, "NCCL_") && variable.Name != "CUDA_DEVICE_MAX_CONNECTIONS" {
			t.Errorf("%s is no NCCL variable", variable.Name)
		}
		if !slices.Contains(kinds, variable.Kind) || variable.Area == "" || variable.Worth == "" || variable.Description == "" {
			t.Errorf("%s lacks a kind, area, worth or description: %+v", variable.Name, variable)
		}
		if (variable.Kind == nccl.Choice || variable.Kind == nccl.List || variable.Kind == nccl.Level) != (len(variable.Values) > 0) {
			t.Errorf("%s: kind %s with values %v", variable.Name, variable.Kind, variable.Values)
		}
		if variable.Kind == nccl.Bytes && variable.Unit != "bytes" && variable.Versions.Until == (nccl.Version{}) {
			t.Errorf("%s is a size without the unit", variable.Name)
		}
		if variable.Unsafe != "" && variable.Worth == nccl.Usual && variable.Name != "NCCL_GRAPH_MIXING_SUPPORT" {
			t.Errorf("%s is unsafe and a usual knob", variable.Name)
		}
		if variable.Safe != nil && (variable.Safe.Allowed == "" || variable.Safe.Reason == "" || variable.Safe.Source == "") {
			t.Errorf("%s narrows its values without saying why", variable.Name)
		}
		free := variable.Kind == nccl.Text || variable.Kind == nccl.Path || variable.Kind == nccl.Undescribed
		if (variable.Allowed() == "") != free {
			t.Errorf("%s of kind %s takes %q", variable.Name, variable.Kind, variable.Allowed())
		}
		for _, other := range []string{variable.Successor, variable.SameAs} {
			if other == "" {
				continue
			}
			if _, ok := nccl.Lookup(other); !ok {
				t.Errorf("%s points to %s, which is not listed", variable.Name, other)
			}
		}
		for _, fallback := range variable.Defaults {
			if fallback.Value == "" {
				if fallback.Note == "" {
					t.Errorf("%s has a default that says nothing", variable.Name)
				}
				continue
			}
			got, err := nccl.Canonicalize(variable.Name, fallback.Value, nccl.Reading{Quoted: true})
			if err != nil || got != fallback.Value {
				t.Errorf("%s: default %q is canonical as %q, %v", variable.Name, fallback.Value, got, err)
			}
		}
	}
	if len(seen) < 150 {
		t.Errorf("only %d variables", len(seen))
	}
}

func TestCatalogueKnowsDefaultsByVersion(t *testing.T) {
	for _, c := range []struct {
		name, version, want string
		known               bool
	}{
		{"NCCL_IB_TIMEOUT", "2.12.12", "14", true},
		{"NCCL_IB_TIMEOUT", "2.20.5", "18", true},
		{"NCCL_IB_TIMEOUT", "2.28.9", "20", true},
		{"NCCL_NVLS_ENABLE", "2.17.1", "1", true},
		{"NCCL_NVLS_ENABLE", "2.28.9", "2", true},
		{"NCCL_BUFFSIZE", "2.28.9", "4194304", true},
		{"NCCL_BUFFSIZE", "2.18.5", "", false}, // 1 MiB on Arm
		{"NCCL_MAX_NCHANNELS", "2.28.9", "", false},
		{"NCCL_IB_AR_THRESHOLD", "2.30.4", "", false},
	} {
		variable, ok := nccl.Lookup(c.name)
		if !ok {
			t.Fatalf("%s is not listed", c.name)
		}
		if got, known := variable.DefaultAt(version(t, c.version)); got != c.want || known != c.known {
			t.Errorf("%s in %s defaults to %q, %v; want %q, %v", c.name, c.version, got, known, c.want, c.known)
		}
	}
	shm, _ := nccl.Lookup("NCCL_SHM_LOCALITY")
	if got, known := shm.DefaultAt(nccl.Version{}); got != "2" || !known {
		t.Errorf("NCCL_SHM_LOCALITY defaults to 2 in every version, got %q, %v", got, known)
	}
	cuMem, _ := nccl.Lookup("NCCL_CUMEM_ENABLE")
	if got, known := cuMem.DefaultAt(nccl.Version{}); known {
		t.Errorf("NCCL_CUMEM_ENABLE has no one default, got %q", got)
	}
}

func TestCatalogueCannotBeChanged(t *testing.T) {
	first, _ := nccl.Lookup("NCCL_NTHREADS")
	first.Safe.Values[0] = 1
	first.Defaults[0].Note = "changed"
	second, _ := nccl.Lookup("NCCL_NTHREADS")
	if second.Safe.Values[0] != 64 || second.Defaults[0].Note == "changed" {
		t.Error("a caller changed the catalogue")
	}
	if _, ok := nccl.Lookup("NCCL_ALGOS"); ok {
		t.Error("NCCL_ALGOS is no variable")
	}
}

func TestF06_NearNames(t *testing.T) {
	for name, want := range map[string]string{
		"CCL_NET_GDR_LEVEL": "NCCL_NET_GDR_LEVEL",
		"NCCL_ALGOS":        "NCCL_ALGO",
		"NCCL_BUFSIZE":      "NCCL_BUFFSIZE",
		"NCCL_BUFFERSIZE":   "NCCL_BUFFSIZE",
		"NCCL_PROTOS":       "NCCL_PROTO",
		"nccl_proto":        "NCCL_PROTO",
		"NCCL_MAX_RINGS":    "NCCL_MAX_NRINGS",
		"NCCL_NTHREAD":      "NCCL_NTHREADS",
	} {
		nearest, distance := nccl.Nearest(name)
		if nearest != want || distance < 1 || distance > 2 {
			t.Errorf("Nearest(%s) = %s, %d; want %s within 2", name, nearest, distance, want)
		}
		if recognition, other := nccl.Recognize(name); recognition != nccl.NearName || other != want {
			t.Errorf("Recognize(%s) = %s, %s", name, recognition, other)
		}
	}
	for name, want := range map[string]nccl.Recognition{
		"NCCL_PROTO":           nccl.KnownName,
		"NCCL_RINGS":           nccl.KnownName,
		"NCCL_BRAND_NEW_THING": nccl.UnknownName,
		"VLLM_USE_V1":          nccl.ForeignName,
		"PATH":                 nccl.ForeignName,
		"":                     nccl.ForeignName,
	} {
		if got, _ := nccl.Recognize(name); got != want {
			t.Errorf("Recognize(%s) = %s, want %s", name, got, want)
		}
	}
	if nearest, distance := nccl.Nearest("NCCL_PROTO"); nearest != "NCCL_PROTO" || distance != 0 {
		t.Errorf("a known name is its own nearest, got %s, %d", nearest, distance)
	}
}
