package store

import (
	"net/url"
	"regexp"
	"strings"
)

// masked stands where a password stood.
const masked = "xxxxx"

var (
	// userinfoPassword reaches to the last "@", since what does not parse may
	// have a password that should have been percent-encoded.
	userinfoPassword = regexp.MustCompile(`(://[^:@/\s]*:)\S*@`)
	keywordPassword  = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&;#]+)`)
)

// MaskURL returns a database URL fit for logs and errors: passwords in its
// user part and in its parameters (password, sslpassword) are replaced. It
// also masks text that is no valid URL, as far as a password can be made out.
func MaskURL(text string) string {
	if u, err := url.Parse(text); err != nil || u.Host == "" && u.User == nil {
		text = userinfoPassword.ReplaceAllString(text, "${1}"+masked+"@")
	} else if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), masked)
		text = u.String()
	}
	return keywordPassword.ReplaceAllString(text, "${1}"+masked)
}

// HasPassword reports whether a database URL carries a password, which anyone
// who lists the processes of the machine can read.
func HasPassword(text string) bool {
	return text != "" && strings.Contains(MaskURL(text), masked)
}
