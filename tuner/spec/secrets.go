package spec

import (
	"net/url"
	"regexp"
	"strings"

	"nocturne/nccl"
)

// secretWords ends the names of variables and flags that hold secrets.
var secretWords = regexp.MustCompile(`(?i)((^|_)(TOKEN|SECRET|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY|API_?KEY|CREDENTIALS?|AUTHORIZATION)|PASSWORD|PASSWD)$`)

// secretName reports whether a variable, or a flag, holds a secret by its name.
func secretName(name string) bool {
	if variable, known := nccl.Lookup(name); known && variable.Secret {
		return true
	}
	return secretWords.MatchString(strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_"))
}

var urls = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"',]+`)

// urlWithPassword finds a URL that holds a password, and returns it masked.
func urlWithPassword(text string) (masked string, found bool) {
	for _, candidate := range urls.FindAllString(text, -1) {
		parsed, err := url.Parse(candidate)
		if err != nil || parsed.User == nil {
			continue
		}
		if _, has := parsed.User.Password(); has {
			return parsed.Redacted(), true
		}
	}
	return "", false
}

const howToGiveSecrets = "write {from_env: NAME} or {from_file: PATH}, which is read at launch and stored nowhere"

// secretVariable refuses a value that must not be stored. The message does not
// repeat it.
func (r *resolver) secretVariable(name string, value scalar, at Position) bool {
	if secretName(name) {
		r.fault(at, "%s holds a secret by its name, and what the file says is stored; %s", name, howToGiveSecrets)
		return true
	}
	if masked, found := urlWithPassword(value.Text); found {
		r.fault(value.Position, "%s: %s holds a password, and what the file says is stored; %s", name, masked, howToGiveSecrets)
		return true
	}
	return false
}

// secretArguments refuses secrets on a command line: arguments are stored, and
// every user of the machine can read them.
func (r *resolver) secretArguments(arguments []scalar) {
	for _, argument := range arguments {
		if flag := flagOf(argument.Text); flag != "" && secretName(flag) {
			r.fault(argument.Position, "%s holds a secret by its name; arguments are stored, and every user of the machine can read them: give it as a variable in server.env, {from_env: NAME} or {from_file: PATH}", flag)
		} else if masked, found := urlWithPassword(argument.Text); found {
			r.fault(argument.Position, "%s holds a password; arguments are stored, and every user of the machine can read them: give it as a variable in server.env, {from_env: NAME} or {from_file: PATH}", masked)
		}
	}
}
