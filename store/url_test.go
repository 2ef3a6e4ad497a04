package store_test

import (
	"net/url"
	"strings"
	"testing"

	"nocturne/store"
)

func TestMaskURL(t *testing.T) {
	tests := map[string]struct{ in, want string }{
		"no password":         {"postgres://nocturne@db/nocturne", "postgres://nocturne@db/nocturne"},
		"user part":           {"postgres://nocturne:hunter2@db:5432/nocturne?sslmode=require", "postgres://nocturne:xxxxx@db:5432/nocturne?sslmode=require"},
		"encoded":             {"postgres://nocturne:p%40ss%2Fw@db/nocturne", "postgres://nocturne:xxxxx@db/nocturne"},
		"parameter":           {"postgres://db/nocturne?user=a&password=hunter2&sslmode=disable", "postgres://db/nocturne?user=a&password=xxxxx&sslmode=disable"},
		"key password":        {"postgres://db/nocturne?sslpassword=hunter2", "postgres://db/nocturne?sslpassword=xxxxx"},
		"not encoded":         {"postgres://nocturne:hun/ter@2@db/nocturne", "postgres://nocturne:xxxxx@db/nocturne"},
		"bad port":            {"postgres://nocturne:hunter2@db:port/nocturne", "postgres://nocturne:xxxxx@db:port/nocturne"},
		"keyword text":        {"host=db user=a password='hunt er2' dbname=n", "host=db user=a password=xxxxx dbname=n"},
		"sqlite":              {"sqlite:/var/lib/a b/nocturne.db", "sqlite:/var/lib/a b/nocturne.db"},
		"colon in a path":     {"sqlite:/var/a:b@c.db", "sqlite:/var/a:b@c.db"},
		"empty password kept": {"postgres://nocturne:@db/nocturne", "postgres://nocturne:xxxxx@db/nocturne"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := store.MaskURL(test.in); got != test.want {
				t.Errorf("MaskURL(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

func FuzzMaskURL(f *testing.F) {
	f.Add("nocturne", "hunter2", "db")
	f.Add("a:b", "p@ss/w?rd#", "::1")
	f.Fuzz(func(t *testing.T, user, password, host string) {
		if len(password) < 8 || strings.Contains(user+host+"postgresnocturne?sslmode=require", password) {
			return // the password cannot be told from the rest of the URL
		}
		u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: host, Path: "/nocturne", RawQuery: "sslmode=require"}
		text := u.String()
		got := store.MaskURL(text)
		encoded := strings.TrimPrefix(u.User.String(), url.User(user).String()+":")
		if strings.Contains(got, password) || strings.Contains(got, encoded) {
			t.Errorf("MaskURL(%q) = %q still has the password", text, got)
		}
		if !store.HasPassword(text) {
			t.Errorf("HasPassword(%q) = false", text)
		}
	})
}
