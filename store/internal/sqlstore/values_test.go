package sqlstore

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestCanonical(t *testing.T) {
	tests := map[string]string{
		`null`:                           `null`,
		` { "b" : 1 , "a" : [ ] } `:      `{"a":[],"b":1}`,
		`{"a":1,"a":2}`:                  `{"a":2}`,
		`[1.0, 1e2, 0.10, -0, -0.0]`:     `[1,100,0.1,0,0]`,
		`18446744073709551615`:           `18446744073709551615`,
		`-9223372036854775808`:           `-9223372036854775808`,
		`16777217`:                       `16777217`,
		`1e21`:                           `1e+21`,
		`1000000000000000000000`:         `1e+21`,
		`0.0000001`:                      `1e-7`,
		`1.7976931348623157e308`:         `1.7976931348623157e+308`,
		`"<&>\u2028"`:                    "\"<&>\\u2028\"",
		`"a\u0000b\\u0000"`:              "\"a\uFFFDb\\\\u0000\"",
		`"\ud800"`:                       "\"\uFFFD\"",
		`{"k\u0000":{"n\u0000":[true]}}`: "{\"k\uFFFD\":{\"n\uFFFD\":[true]}}",
	}
	for in, want := range tests {
		if got, err := canonical([]byte(in)); err != nil || string(got) != want {
			t.Errorf("canonical(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{``, `{`, `1 2`, `NaN`, `[Infinity]`, `1e999`, `{"a":-1e400}`, `'a'`} {
		if got, err := canonical([]byte(in)); err == nil {
			t.Errorf("canonical(%s) = %s, want an error", in, got)
		}
	}
}

// FuzzCanonical: the canonical form is its own, is valid, and has nothing that a
// database refuses.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5,1e300,"x",null,true]}`, `"\u0000"`, `18446744073709551616`, `-0.0`, `1e19`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		once, err := canonical(document)
		if err != nil {
			return
		}
		if !json.Valid(once) || bytes.Contains(once, []byte{0}) {
			t.Fatalf("canonical(%q) = %q, which is no document", document, once)
		}
		twice, err := canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("canonical(%q) = %q, and again %q, %v", document, once, twice, err)
		}
		if text(string(once)) != string(once) {
			t.Fatalf("canonical(%q) = %q has what a database refuses", document, once)
		}
	})
}

func TestFieldOf(t *testing.T) {
	tests := map[string]string{`{"name":"chat"}`: "chat", `{"name":7}`: "", `{}`: "", `[]`: "", `null`: "", ``: "", `{`: "", `{"name":"a\u0000"}`: "a\uFFFD"}
	for document, want := range tests {
		if got := fieldOf([]byte(document), "name"); got != want {
			t.Errorf("fieldOf(%s) = %q, want %q", document, got, want)
		}
	}
}

func TestInsertStatement(t *testing.T) {
	rows := [][]column{
		{{"a", 1}, {"b", expression("now()")}, {"c", "x\x00"}},
		{{"a", 2}, {"b", nil}, {"c", "y"}},
	}
	statement, values := insertStatement("t", rows, "on conflict do nothing")
	const want = "insert into t (a, b, c) values ($1, now(), $2), ($3, $4, $5) on conflict do nothing"
	if statement != want {
		t.Errorf("statement %q, want %q", statement, want)
	}
	if len(values) != 5 || values[1] != "x\uFFFD" || values[3] != nil {
		t.Errorf("values %q", values)
	}
}
