package main

import _ "lockstep/live/java"
