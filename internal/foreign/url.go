package foreign

import "strings"

// URLs returns urls, separated by commas, without their users, passwords and tokens, for people to
// read.
func URLs(urls string) string {
	shown := strings.Split(urls, ",")
	for i, u := range shown {
		at := strings.LastIndex(u, "@")
		if at < 0 {
			continue
		}
		scheme := ""
		if before, _, ok := strings.Cut(u[:at], "://"); ok {
			scheme = before + "://"
		}
		shown[i] = scheme + u[at+1:]
	}
	return strings.Join(shown, ",")
}
