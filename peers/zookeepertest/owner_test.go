package zookeepertest

import "testing"

// A server that has lost its data counts the nodes of a lock from 0 again. The new node must not look
// like the one before.
func TestAPathThatComesAgainIsAnotherHold(t *testing.T) {
	const path = "/orders/n-0000000000"
	before, after := Node{Path: path, Owner: 1}, Node{Path: path, Owner: 2}
	if owner(before) == owner(after) {
		t.Errorf("both nodes are known as %s", owner(before))
	}
	const protected = "/orders/_c_38553bd6d1d57f710ae70ddcc3d24715-n-0000000000"
	if got := owner(Node{Path: protected, Owner: 1}); got != protected {
		t.Errorf("a protected node is known as %s; a live run finds no such text in a request", got)
	}
}

func TestOnlySequentialNodesHaveANumber(t *testing.T) {
	for path, want := range map[string]string{"/orders/n-0000000012": "0000000012", "/orders/0000000012": "0000000012", "/orders/readme": "", "/orders/n-12": "", "/a": ""} {
		if got := number(Node{Path: path}); got != want {
			t.Errorf("the number of %s is %q, want %q", path, got, want)
		}
	}
}
