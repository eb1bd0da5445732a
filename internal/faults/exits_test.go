package faults

var exits []fault
