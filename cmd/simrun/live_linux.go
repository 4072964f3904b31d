package main

import (
	_ "lockstep/live/java"
	_ "lockstep/live/livecmd"
)
