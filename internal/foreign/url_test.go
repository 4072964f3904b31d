package foreign

import "testing"

func TestAShownURLHasNoPassword(t *testing.T) {
	for _, c := range []struct{ urls, want string }{
		{"nats://10.0.0.1:4222", "nats://10.0.0.1:4222"},
		{"nats://u:pass@h:1", "nats://h:1"},
		{"tls://token@h:1", "tls://h:1"},
		{"u:pass@h:1", "h:1"},
		{"nats://u:p@ss/w%zz@h:1", "nats://h:1"},
		{"nats://u:a://b@h:1", "nats://h:1"},
		{"nats://u:pass@h:1, nats://g:2,v:word@i:3", "nats://h:1, nats://g:2,i:3"},
	} {
		if got := URLs(c.urls); got != c.want {
			t.Errorf("%s is shown as %s, want %s", c.urls, got, c.want)
		}
	}
}
