package spec

import (
	"fmt"
	"strings"
)

// claims says which part of a file sets which variable or flag: a second one
// would overwrite it, and what was measured would not be what was asked.
type claims struct {
	variables map[string]claim
	flags     map[string]claim
}

type claim struct {
	owner  string // "server.env", "group attention"
	preset string
	at     Position
}

func newClaims() claims {
	return claims{variables: map[string]claim{}, flags: map[string]claim{}}
}

// claimVariable records that the owner sets the variable, and refuses it when
// another one does already.
func (r *resolver) claimVariable(name string, by claim) bool {
	return r.claim(r.claims.variables, name, name, by)
}

// claimFlag does the same for a flag. --a_b and --a-b are one flag to servers
// that accept both.
func (r *resolver) claimFlag(flag string, by claim) bool {
	return r.claim(r.claims.flags, normalFlag(flag), flag, by)
}

func (r *resolver) claim(made map[string]claim, key, name string, by claim) bool {
	other, taken := made[key]
	if !taken {
		made[key] = by
		return true
	}
	if other.owner == by.owner {
		return true // a repeated flag, or two choices of one group
	}
	advice := "keep one of them"
	for _, preset := range []string{by.preset, other.preset} {
		if preset != "" {
			advice = fmt.Sprintf("write %s: null to remove what %s brings", name, preset)
		}
	}
	r.fault(by.at, "%s is set by %s here and by %s at %d:%d; %s", name, by.owner, other.owner, other.at.Line, other.at.Column, advice)
	return false
}

// normalFlag is a long flag with dashes for underscores.
func normalFlag(flag string) string {
	if !strings.HasPrefix(flag, "--") {
		return flag
	}
	return strings.ReplaceAll(flag, "_", "-")
}

// flagOf is the flag that an argument gives, in either spelling; empty for a
// value.
func flagOf(argument string) string {
	flag, _, _ := strings.Cut(argument, "=")
	if !flagName.MatchString(flag) {
		return ""
	}
	return flag
}
