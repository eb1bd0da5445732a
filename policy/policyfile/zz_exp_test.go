package policyfile
import ("testing";"strings";"time";"fmt")
func TestBig(t *testing.T){
 rep:=func(s string) string {return strings.Repeat(s,(1<<18-2000)/len(s))}
 for n,s:=range map[string]string{
  "keys": func() string{var b strings.Builder; for i:=0;b.Len()<1<<18-200;i++{fmt.Fprintf(&b,"k%d: 1\n",i)};return b.String()}(),
  "seq": rep("- a\n"), "flowseq":"a: ["+rep("a,")+"a]\n","long plain":"a: "+rep("a b\n  "),"quote":"a: \""+rep("x\n ")+"\"\n","literal":"a: |\n"+rep("  x\n"),
  "brackets":rep("["),"dashes":rep("- "),"q":rep("? "),"amp":rep("&a "),"amp1":"a: "+rep("&a")+"\n","bang":rep("!a "),"comments":rep("# x\n"),"one line":"a: "+rep("x"),"flowmap oneline":"{"+rep("a: 1, ")+"}","indent":func() string{var b strings.Builder; for i:=0;b.Len()<1<<18-2000;i++{b.WriteString(strings.Repeat(" ",i)+"a:\n")};return b.String()}(),
  "sweeps":"version: 1\nsweeps:\n"+func() string{var b strings.Builder; for i:=0;b.Len()<1<<18-300;i++{fmt.Fprintf(&b,"  s%d:\n    table: a.t%d\n    age: at\n    window: 3d\n    guard: {ended: true}\n",i,i)};return b.String()}(),
  "sweeps same":"version: 1\nsweeps:\n"+func() string{var b strings.Builder; for i:=0;b.Len()<1<<18-300;i++{fmt.Fprintf(&b,"  s%d:\n    table: a.t\n    age: at\n    window: 3d\n    guard: {ended: tru}\n",i)};return b.String()}(),
 }{
  t0:=time.Now(); _,err:=Parse("p",[]byte(s)); e:=""; if err!=nil{e=err.Error(); if len(e)>100{e=e[:100]}}
  fmt.Printf("%-16s %8d %8.2fs %q\n",n,len(s),time.Since(t0).Seconds(),e)
 }
}
