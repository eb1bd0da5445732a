package faults

var costs []fault
