package locktest

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/sim"
)

// The judges learn from the traits that a hold has several parts on one server.
func TestTheTraitsHaveTheParts(t *testing.T) {
	if got := (Subject{Name: "three", Parts: 3}).compile(offers{}).Parts; got != 3 {
		t.Errorf("Parts is %d in the traits, want 3", got)
	}
}

type anyServer struct{ sim.Server }

func TestIndependentServers(t *testing.T) {
	made := 0
	servers := Independent(2, 7000, func() sim.Server { made++; return anyServer{} })
	var addrs []string
	for _, n := range servers.Nodes() {
		addrs = append(addrs, n.Addr)
	}
	if got := strings.Join(addrs, " "); servers.Count() != 2 || made != 2 || got != "192.0.2.1:7000 192.0.2.2:7000" {
		t.Errorf("%d servers, %d made, at %s", servers.Count(), made, got)
	}
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "0 servers; a world needs one at least") {
			t.Errorf("no server: %s", said)
		}
	}()
	Independent(0, 7000, nil)
}
